"""The doors of Spark's own calls: format("hudi") of readers and writers, views, and streams into a table."""
