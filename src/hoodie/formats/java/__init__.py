"""What Java defines and the format inherits: `.properties` files, string order, hash codes."""
