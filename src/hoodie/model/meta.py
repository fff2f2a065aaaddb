"""The meta columns that every stored row carries in front of the user's own."""

COMMIT_TIME = "_hoodie_commit_time"
COMMIT_SEQNO = "_hoodie_commit_seqno"
RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
FILE_NAME = "_hoodie_file_name"

#: In the order in which files and reads have them; all nullable strings.
META_COLUMNS = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)

#: Also the library's, but a user's column: true marks a row as deleted.
IS_DELETED = "_hoodie_is_deleted"
