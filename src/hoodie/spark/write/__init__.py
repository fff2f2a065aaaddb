"""DataFrames to data files, by driver threads or by executors."""
