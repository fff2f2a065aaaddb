// The part of the Hive metastore's Thrift interface that a sync uses. Names and numbers are the interface's own.

struct FieldSchema {
  1: string name,
  2: string type,
  3: string comment
}

struct SerDeInfo {
  1: string name,
  2: string serializationLib,
  3: map<string, string> parameters
}

struct Order {
  1: string col,
  2: i32 order
}

struct StorageDescriptor {
  1: list<FieldSchema> cols,
  2: string location,
  3: string inputFormat,
  4: string outputFormat,
  5: bool compressed,
  6: i32 numBuckets,
  7: SerDeInfo serdeInfo,
  8: list<string> bucketCols,
  9: list<Order> sortCols,
  10: map<string, string> parameters
}

struct Table {
  1: string tableName,
  2: string dbName,
  3: string owner,
  4: i32 createTime,
  5: i32 lastAccessTime,
  6: i32 retention,
  7: StorageDescriptor sd,
  8: list<FieldSchema> partitionKeys,
  9: map<string, string> parameters,
  10: string viewOriginalText,
  11: string viewExpandedText,
  12: string tableType,
  17: optional string catName,
  18: optional i32 ownerType,
  19: optional i64 writeId
}

struct Partition {
  1: list<string> values,
  2: string dbName,
  3: string tableName,
  4: i32 createTime,
  5: i32 lastAccessTime,
  6: StorageDescriptor sd,
  7: map<string, string> parameters,
  9: optional string catName,
  10: optional i64 writeId
}

struct Database {
  1: string name,
  2: string description,
  3: string locationUri,
  4: map<string, string> parameters
}

struct EnvironmentContext {
  1: map<string, string> properties
}

struct GetTableRequest {
  1: string dbName,
  2: string tblName
}

struct GetTableResult {
  1: Table table
}

struct AddPartitionsRequest {
  1: string dbName,
  2: string tblName,
  3: list<Partition> parts,
  4: bool ifNotExists,
  5: optional bool needResult
}

struct AddPartitionsResult {
  1: optional list<Partition> partitions
}

struct RequestPartsSpec {
  1: optional list<string> names
}

struct DropPartitionsRequest {
  1: string dbName,
  2: string tblName,
  3: RequestPartsSpec parts,
  4: optional bool deleteData,
  5: optional bool ifExists,
  7: optional EnvironmentContext environmentContext,
  8: optional bool needResult
}

struct DropPartitionsResult {
  1: optional list<Partition> partitions
}

exception AlreadyExistsException {
  1: string message
}

exception NoSuchObjectException {
  1: string message
}

exception InvalidObjectException {
  1: string message
}

exception InvalidOperationException {
  1: string message
}

exception MetaException {
  1: string message
}

service ThriftHiveMetastore {
  list<string> set_ugi(1: string user_name, 2: list<string> group_names) throws (1: MetaException o1),

  Database get_database(1: string name) throws (1: NoSuchObjectException o1, 2: MetaException o2),
  void create_database(1: Database database)
    throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3),

  Table get_table(1: string dbname, 2: string tbl_name) throws (1: MetaException o1, 2: NoSuchObjectException o2),
  GetTableResult get_table_req(1: GetTableRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2),
  void create_table(1: Table tbl)
    throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3,
            4: NoSuchObjectException o4),
  void alter_table_with_environment_context(1: string dbname, 2: string tbl_name, 3: Table new_tbl,
    4: EnvironmentContext environment_context) throws (1: InvalidOperationException o1, 2: MetaException o2),
  void drop_table(1: string dbname, 2: string name, 3: bool deleteData)
    throws (1: NoSuchObjectException o1, 2: MetaException o3),

  list<string> get_partition_names(1: string db_name, 2: string tbl_name, 3: i16 max_parts)
    throws (1: NoSuchObjectException o1, 2: MetaException o2),
  list<Partition> get_partitions_by_names(1: string db_name, 2: string tbl_name, 3: list<string> names)
    throws (1: MetaException o1, 2: NoSuchObjectException o2),
  AddPartitionsResult add_partitions_req(1: AddPartitionsRequest request)
    throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3),
  void alter_partitions(1: string db_name, 2: string tbl_name, 3: list<Partition> new_parts)
    throws (1: InvalidOperationException o1, 2: MetaException o2),
  DropPartitionsResult drop_partitions_req(1: DropPartitionsRequest req)
    throws (1: NoSuchObjectException o1, 2: MetaException o2)
}
