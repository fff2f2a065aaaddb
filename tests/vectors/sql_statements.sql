-- Statements of Hudi's SQL pages, in the order of one session; ? asks for rows. $root is the session's folder, $t.1
-- the first instant of the table t.
-- Tables of their own, and what asks the same again, are left out of the default suite: "by night" to "by day".
CREATE TABLE trips (id INT, name STRING COMMENT 'who', price DOUBLE, ts BIGINT, city STRING) USING hudi PARTITIONED BY (city) COMMENT 'rides' TBLPROPERTIES (type='cow', primaryKey='id', preCombineField='ts')
INSERT INTO trips VALUES (1, 'a', 10.0, 1, 'oslo'), (2, 'b', 20.0, 1, 'rome'), (3, 'c', 30.0, 1, 'oslo')
? DESCRIBE trips
? DESCRIBE EXTENDED trips
? DESCRIBE trips name
-- by night
? DESCRIBE TABLE EXTENDED trips price
-- by day
? DESCRIBE trips PARTITION (city='oslo')
? SHOW CREATE TABLE trips
? SHOW TBLPROPERTIES trips
-- by night
? SHOW TBLPROPERTIES trips ('primaryKey')
-- by day
? SHOW COLUMNS IN trips
-- by night
? SHOW COLUMNS FROM trips IN default
-- by day
? SHOW PARTITIONS trips
? SHOW PARTITIONS trips PARTITION (city='oslo')
-- by night
? SHOW PARTITIONS trips PARTITION (city='nowhere')
-- by day
? SHOW TABLES
-- by night
? SHOW TABLES LIKE 'tr*'
-- by day
? SELECT id, name, price, ts, city FROM trips ORDER BY id
-- by night
? DESCRIBE QUERY SELECT id, price FROM trips
-- by day
CREATE TABLE trips_ext USING hudi LOCATION '$root/warehouse/trips'
? DESCRIBE trips_ext
-- by night
? SELECT id FROM trips_ext ORDER BY id
-- by day
DROP TABLE trips_ext
-- by night
? SELECT count(*) n FROM trips
CREATE TABLE opts (id INT, v STRING, ts BIGINT) USING hudi OPTIONS (path '$root/opts', primaryKey 'id', type 'mor', preCombineField 'ts')
INSERT INTO opts SELECT 1, 'x', 10
? SELECT id, v, ts FROM opts
? DESCRIBE EXTENDED opts
CREATE TABLE liked2 LIKE trips USING hudi
? DESCRIBE liked2
? SHOW TBLPROPERTIES liked2
INSERT INTO liked2 SELECT id, name, price, ts, city FROM trips
? SELECT id, city FROM liked2 ORDER BY id
CREATE TABLE IF NOT EXISTS liked3 LIKE trips USING hudi LOCATION '$root/liked3' TBLPROPERTIES (primaryKey='id', type='mor', preCombineField='ts')
? DESCRIBE EXTENDED liked3
INSERT INTO liked3 SELECT id, name, price, ts, city FROM trips
? SELECT id, city FROM liked3 ORDER BY id
CREATE OR REPLACE TABLE liked3 (id INT, w STRING) USING hudi TBLPROPERTIES (primaryKey='id')
? DESCRIBE liked3
-- by day
CREATE OR REPLACE TABLE ctas USING hudi TBLPROPERTIES (primaryKey='id') AS SELECT id, name FROM trips
? SELECT id, name FROM ctas ORDER BY id
-- by night
CREATE TABLE ctas2 USING hudi TBLPROPERTIES (primaryKey='id', type='mor') PARTITIONED BY (dt) AS SELECT 1 AS id, 'a1' AS name, '2021-12-01' AS dt
? SELECT id, name, dt FROM ctas2
CREATE TABLE ctas3 USING hudi OPTIONS (primaryKey='id') COMMENT 'made' AS SELECT id, price FROM trips WHERE id < 3
? SELECT id, price FROM ctas3 ORDER BY id
CREATE TABLE merged (id INT, v STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey='id', preCombineField='ts', recordMergeMode='COMMIT_TIME_ORDERING')
INSERT INTO merged VALUES (1, 'new', 10)
INSERT INTO merged VALUES (1, 'old', 5)
? SELECT id, v, ts FROM merged
-- by day
CREATE TABLE hist (id INT, v STRING, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey='id', preCombineField='ts')
INSERT INTO hist VALUES (1, 'a', 1), (2, 'b', 1)
UPDATE hist SET v = 'a2', ts = 2 WHERE id = 1
DELETE FROM hist WHERE id = 2
? SELECT id, v FROM hist TIMESTAMP AS OF '$hist.1' ORDER BY id
? SELECT id, v FROM hist VERSION AS OF '$hist.1' ORDER BY id
-- by night
? SELECT id, v FROM hist VERSION AS OF $hist.1 ORDER BY id
-- by day
? SELECT id, v FROM hist FOR SYSTEM_TIME AS OF '$hist.2' ORDER BY id
? SELECT id, v FROM hist TIMESTAMP AS OF current_timestamp() ORDER BY id
-- by night
? SELECT id, v FROM hist TIMESTAMP AS OF date_add(current_date(), 1) ORDER BY id
? SELECT id, v FROM hist TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY ORDER BY id
? SELECT id, v FROM hist TIMESTAMP AS OF TIMESTAMP '2100-01-01 00:00:00' ORDER BY id
? SELECT id, v FROM hist TIMESTAMP AS OF '2100-01-01' ORDER BY id
? SELECT id, v FROM hist TIMESTAMP AS OF '2100-01-01 10:00:00.123' ORDER BY id
-- by day
? SELECT h.id, h.v FROM hist TIMESTAMP AS OF '$hist.1' AS h ORDER BY id
? SELECT id, v FROM hudi_table_changes('hist', 'latest_state', 'earliest') ORDER BY id
-- by night
? SELECT id, v FROM hudi_table_changes('hist', 'latest_state', '$hist.1') ORDER BY id
-- by day
? SELECT id, v FROM hudi_table_changes('hist', 'latest_state', '$hist.1', '$hist.2') ORDER BY id
-- by night
? SELECT id, v FROM hudi_query('hist', 'snapshot') ORDER BY id
-- by day
? SELECT id, v FROM hudi_query('hist', 'read_optimized') ORDER BY id
ALTER TABLE trips RENAME TO rides
? SHOW TABLES LIKE 'r*'
? SELECT id FROM rides ORDER BY id
? SELECT id FROM trips
? DESCRIBE EXTENDED rides
ALTER TABLE rides RENAME TO trips
ALTER TABLE trips SET TBLPROPERTIES (hoodie.cleaner.commits.retained = '12')
ALTER TABLE trips SET TBLPROPERTIES ('note' = 'a note')
? SHOW TBLPROPERTIES trips
ALTER TABLE trips UNSET TBLPROPERTIES ('note')
ALTER TABLE trips UNSET TBLPROPERTIES IF EXISTS ('nothing')
? SHOW TBLPROPERTIES trips
COMMENT ON TABLE trips IS 'all rides'
? DESCRIBE EXTENDED trips
ALTER TABLE trips ADD COLUMNS (extra STRING)
ALTER TABLE trips ADD COLUMN extra2 INT
? DESCRIBE trips
? SELECT id, extra, extra2, city FROM trips ORDER BY id
INSERT INTO trips VALUES (4, 'd', 40.0, 1, 'e', 5, 'bern')
? SELECT id, name, extra, extra2, city FROM trips ORDER BY id
ALTER TABLE trips ALTER COLUMN id TYPE BIGINT
ALTER TABLE trips CHANGE COLUMN ts ts BIGINT COMMENT 'when'
ALTER TABLE trips CHANGE COLUMN name name STRING COMMENT 'driver'
ALTER TABLE trips CHANGE COLUMN extra2 extra2 BIGINT
? DESCRIBE trips
? SELECT id, extra2 FROM trips ORDER BY id
ALTER TABLE trips ALTER COLUMN extra COMMENT 'more'
? DESCRIBE trips
ALTER TABLE trips DROP COLUMN extra
ALTER TABLE trips RENAME COLUMN extra TO extra3
-- by night
SET hoodie.schema.on.read.enable=true
CREATE TABLE evo (id STRING, a INT, b STRING, s STRUCT<x: INT, y: STRING>, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey='id', preCombineField='ts')
INSERT INTO evo VALUES ('k1', 1, 'b1', struct(1, 'y1'), 1), ('k2', 2, 'b2', struct(2, 'y2'), 1)
ALTER TABLE evo ADD COLUMNS (c INT AFTER id)
? DESCRIBE evo
ALTER TABLE evo ADD COLUMNS (c2 STRING COMMENT 'second' FIRST)
? DESCRIBE evo
ALTER TABLE evo ADD COLUMNS (s.z DOUBLE AFTER x)
? DESCRIBE evo
? SELECT id, c, a, b, s FROM evo ORDER BY id
ALTER TABLE evo ALTER COLUMN a TYPE BIGINT
ALTER TABLE evo RENAME COLUMN b TO bb
ALTER TABLE evo ALTER COLUMN bb COMMENT 'renamed'
ALTER TABLE evo ALTER COLUMN a DROP NOT NULL
ALTER TABLE evo ALTER COLUMN a SET NOT NULL
ALTER TABLE evo ALTER COLUMN a AFTER bb
ALTER TABLE evo ALTER COLUMN a FIRST
? DESCRIBE evo
ALTER TABLE evo DROP COLUMN c
ALTER TABLE evo DROP COLUMN s.y
? DESCRIBE evo
? SELECT id, a, bb, s FROM evo ORDER BY id
UPDATE evo SET bb = 'b2-new' WHERE id = 'k2'
INSERT INTO evo VALUES ('k3', 'b3', 3, named_struct('x', 3, 'z', 3.5D), 2)
? SELECT id, a, bb, s FROM evo ORDER BY id
ALTER TABLE evo ALTER COLUMN a TYPE STRING
? SELECT id, a FROM evo ORDER BY id
ALTER TABLE evo ALTER COLUMN a TYPE INT
ALTER TABLE evo DROP COLUMN id
ALTER TABLE evo RENAME COLUMN id TO id2
ALTER TABLE evo RENAME COLUMN nothing TO more
ALTER TABLE evo DROP COLUMN nothing
ALTER TABLE evo DROP COLUMN IF EXISTS nothing
ALTER TABLE evo ADD COLUMNS (a INT)
CREATE TABLE evoplain (id STRING, a INT, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey='id', preCombineField='ts')
INSERT INTO evoplain VALUES ('k1', 1, 1)
ALTER TABLE evoplain SET TBLPROPERTIES ('hoodie.note' = 'x')
? SHOW TBLPROPERTIES evoplain
ALTER TABLE evoplain UNSET TBLPROPERTIES ('hoodie.note')
ALTER TABLE evoplain REPLACE COLUMNS (id STRING, b INT)
? DESCRIBE evoplain
SET hoodie.schema.on.read.enable=false
-- by day
CREATE TABLE parts (id INT, v STRING, ts BIGINT, dt STRING, hh INT) USING hudi PARTITIONED BY (dt, hh) TBLPROPERTIES (primaryKey='id', preCombineField='ts')
INSERT INTO parts VALUES (1, 'a', 1, '2024-01-01', 1), (2, 'b', 1, '2024-01-01', 2), (3, 'c', 1, '2024-01-02', 1)
INSERT INTO parts PARTITION (dt = '2024-01-03', hh = 3) SELECT 4, 'd', 1
INSERT INTO parts PARTITION (dt = '2024-01-03', hh) SELECT 5, 'e', 1, 4
INSERT INTO parts PARTITION (dt, hh) SELECT 6, 'f', 1, '2024-01-04', 1
? SELECT id, v, dt, hh FROM parts ORDER BY id
? SHOW PARTITIONS parts
? SHOW PARTITIONS parts PARTITION (dt = '2024-01-01')
ALTER TABLE parts DROP PARTITION (dt = '2024-01-01', hh = 1)
? SHOW PARTITIONS parts
ALTER TABLE parts DROP PARTITION (dt = '2024-01-01')
? SHOW PARTITIONS parts
-- by night
ALTER TABLE parts DROP IF EXISTS PARTITION (dt = '1999-01-01', hh = 1)
-- by day
ALTER TABLE parts DROP PARTITION (dt = '2024-01-02', hh = 1), PARTITION (dt = '2024-01-03', hh = 3)
? SHOW PARTITIONS parts
ALTER TABLE parts ADD PARTITION (dt = '2025-01-01', hh = 1)
-- by night
ALTER TABLE parts ADD IF NOT EXISTS PARTITION (dt = '2025-01-01', hh = 1)
-- by day
? SHOW PARTITIONS parts
MSCK REPAIR TABLE parts
ALTER TABLE parts RECOVER PARTITIONS
? SHOW PARTITIONS parts
TRUNCATE TABLE parts PARTITION (dt = '2024-01-03', hh = 4)
? SELECT id FROM parts ORDER BY id
TRUNCATE TABLE parts
? SELECT id FROM parts ORDER BY id
-- by night
INSERT INTO parts VALUES (1, 'a', 1, '2024-01-01', 1), (2, 'b', 1, '2024-01-01', 2), (3, 'c', 1, '2024-01-02', 1)
INSERT OVERWRITE parts PARTITION (dt = '2024-01-01', hh = 1) SELECT 9, 'z', 1
? SELECT id, dt, hh FROM parts ORDER BY id
INSERT OVERWRITE TABLE parts PARTITION (dt = '2024-01-01', hh) SELECT 10, 'y', 1, 2
? SELECT id, dt, hh FROM parts ORDER BY id
INSERT OVERWRITE parts SELECT 11, 'x', 1, '2024-01-05', 1
? SELECT id, dt, hh FROM parts ORDER BY id
INSERT INTO parts (id, v, ts, dt, hh) VALUES (12, 'w', 1, '2024-01-05', 1)
INSERT INTO parts (hh, dt, ts, v, id) SELECT 1, '2024-01-05', 1, 'v', 13
INSERT INTO parts (id, ts, dt, hh) VALUES (14, 1, '2024-01-05', 1)
? SELECT id, v, dt, hh FROM parts ORDER BY id
INSERT INTO parts TABLE parts
INSERT INTO parts FROM parts SELECT id + 100, v, ts, dt, hh WHERE id = 11
? SELECT id, v, dt, hh FROM parts ORDER BY id
INSERT INTO parts SELECT 1
-- by day
ANALYZE TABLE trips COMPUTE STATISTICS
-- by night
ANALYZE TABLE trips COMPUTE STATISTICS FOR COLUMNS price
ANALYZE TABLE trips COMPUTE STATISTICS NOSCAN
-- by day
REFRESH TABLE trips
-- by night
REFRESH trips
-- by day
CACHE TABLE trips
UNCACHE TABLE trips
MERGE INTO hist AS t USING (SELECT 1 AS id, 'm' AS v, 9L AS ts) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *  WHEN NOT MATCHED THEN INSERT *
? SELECT id, v FROM hist ORDER BY id
? SELECT id, v FROM hist ORDER BY id
-- by night
INSERT INTO trips VALUES (5, 'm', 1.0, 1, 'e', 5, 'bern')
MERGE INTO trips AS t USING (SELECT 5 AS id, 'mm' AS name, 2.0 AS price, 9L AS ts, 'bern' AS city) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.name = s.name, t.city = s.city, t.ts = s.ts
? SELECT id, name, price, city FROM trips WHERE id = 5
MERGE INTO trips AS t USING (SELECT 5 AS id, 'm3' AS name, 2.0 AS price, 10L AS ts, 'bern' AS city) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.name = s.name, t.city = t.city, t.ts = s.ts
? SELECT id, name, price, city FROM trips WHERE id = 5
MERGE INTO trips AS t USING (SELECT 5 AS id, 'm3' AS name, 2.0 AS price, 10L AS ts, 'bern' AS city) AS s ON t.id = s.id WHEN MATCHED AND s.name = 'm3' THEN DELETE
? SELECT id, name FROM trips WHERE id = 5
-- by day
UPDATE trips SET price = price * 2, name = concat(name, '!') WHERE id IN (SELECT id FROM hist)
? SELECT id, name, price FROM trips ORDER BY id
UPDATE trips SET city = city WHERE id = 1
DELETE FROM trips WHERE id NOT IN (1, 2)
? SELECT id FROM trips ORDER BY id
DELETE FROM trips
? SELECT id FROM trips ORDER BY id
-- by night
SET hoodie.spark.sql.merge.into.partial.updates=true
CREATE TABLE partial (id INT, v STRING, w STRING, ts BIGINT) USING hudi TBLPROPERTIES (type='mor', primaryKey='id', preCombineField='ts')
INSERT INTO partial VALUES (1, 'v', 'w', 1)
MERGE INTO partial t USING (SELECT 1 AS id, 'v2' AS v, 2L AS ts) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.v = s.v, t.ts = s.ts
? SELECT id, v, w, ts FROM partial
SET hoodie.spark.sql.merge.into.partial.updates=false
-- by day
CREATE INDEX idx ON trips (name)
-- by night
CREATE INDEX IF NOT EXISTS idx ON trips USING lucene (name)
-- by day
SHOW INDEXES FROM trips
DROP INDEX idx ON trips
-- by night
REFRESH INDEX idx ON trips
CREATE TABLE keyless (id INT, v STRING) USING hudi
INSERT INTO keyless VALUES (1, 'a'), (1, 'a')
? SELECT id, v FROM keyless
UPDATE keyless SET v = 'b'
DELETE FROM keyless WHERE id = 1
? SELECT count(*) n FROM keyless
CREATE TABLE pq USING parquet AS SELECT id, v FROM hist
? SELECT * FROM pq
DROP TABLE pq
CREATE TABLE taken (id INT) USING hudi TBLPROPERTIES (primaryKey='id', type='other')
CREATE TABLE typed (id INT, b BOOLEAN, t TINYINT, sh SMALLINT, f FLOAT, d DECIMAL(10,2), dt DATE, tm TIMESTAMP, bi BINARY, a ARRAY<INT>, m MAP<STRING, INT>, s STRUCT<x: INT NOT NULL, y: ARRAY<STRING>>) USING hudi TBLPROPERTIES (primaryKey='id')
INSERT INTO typed VALUES (1, true, 1, 2, 1.5, 2.25, DATE'2024-01-01', TIMESTAMP'2024-01-01 10:00:00', X'01', array(1), map('k', 1), named_struct('x', 1, 'y', array('z')))
? DESCRIBE typed
CREATE TABLE no_nulls (id INT NOT NULL, v STRING) USING hudi TBLPROPERTIES (primaryKey='id')
? DESCRIBE no_nulls
INSERT INTO no_nulls VALUES (1, 'x')
INSERT INTO no_nulls VALUES (CAST(null AS INT), 'x')
CREATE TABLE loose (id INT, v STRING NOT NULL, ts BIGINT) USING hudi TBLPROPERTIES (primaryKey='id', preCombineField='ts')
INSERT INTO loose VALUES (1, 'a', 1), (2, 'b', 1)
INSERT INTO loose VALUES (3, null, 1)
UPDATE loose SET v = null WHERE id = 1
MERGE INTO loose USING (SELECT 2 id, CAST(null AS STRING) v, 2L ts) s ON loose.id = s.id WHEN MATCHED THEN UPDATE SET *
? SELECT id, v FROM loose ORDER BY id
INSERT INTO loose VALUES (5, 'e', 1), (4, DEFAULT, 1)
UPDATE loose SET v = DEFAULT WHERE id = 5
? SELECT id, v FROM loose WHERE id > 3 ORDER BY id
-- by day
DROP TABLE IF EXISTS nothing
-- by night
DROP TABLE nothing
DROP TABLE typed PURGE
DROP TABLE opts
