# The SQL quick start of 0.9: OPTIONS, partitioned tables, MERGE, UPDATE, DELETE, INSERT OVERWRITE, SHOW and DROP PARTITION.
spark.sql(f"""
create table if not exists {name} (id bigint, name string, price double, ts bigint, dt string)
using hudi location '{base}' options (type = 'cow', primaryKey = 'id', preCombineField = 'ts') partitioned by (dt)
""")
spark.sql(f"insert into {name} select 1, 'a1', 20, 1000, '2021-01-01'")
spark.sql(f"insert into {name} partition (dt = '2021-01-02') select 2, 'a2', 30, 1000")
spark.sql(f"insert into {name} values (3, 'a3', 40, 1000, '2021-01-02')")
spark.sql(f"""
merge into {name} as target
using (select 1 as id, 'a1_1' as name, 21.0 as price, 1001L as ts, '2021-01-01' as dt
       union all select 4, 'a4', 50.0, 1001L, '2021-01-03') source
on target.id = source.id and target.dt = source.dt
when matched then update set id = source.id, name = source.name, price = source.price, ts = source.ts, dt = source.dt
when not matched then insert (id, name, price, ts, dt) values (id, name, price, ts, dt)
""")
spark.sql(f"update {name} set price = price * 2 where id = 2")
spark.sql(f"delete from {name} where id = 3")
spark.sql(f"insert overwrite table {name} partition (dt = '2021-01-03') select 5, 'a5', 60, 1000")
partitions = [r[0] for r in spark.sql(f"show partitions {name}").collect()]
spark.sql(f"alter table {name} drop partition (dt = '2021-01-03')")
rows = [partitions, sorted(tuple(r) for r in spark.sql(f"select id, name, price, dt from {name}").collect())]
expected = [
    ["dt=2021-01-01", "dt=2021-01-02", "dt=2021-01-03"],
    [(1, "a1_1", 21.0, "2021-01-01"), (2, "a2", 60.0, "2021-01-02")],
]
