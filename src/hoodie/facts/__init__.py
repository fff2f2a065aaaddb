"""What a table holds and costs, said once for its object, the command line, reports and metrics."""
