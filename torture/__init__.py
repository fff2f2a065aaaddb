"""Tables written while everything fails that can: `make torture`. What must hold then: docs/reliability.md."""
