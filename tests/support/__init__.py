"""What tests share: oracles, histories, faults, servers, and tables in the middle of something."""
