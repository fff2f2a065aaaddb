{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['city'],
          unique_key='trip_id', file_format='hudi',
          options={'primaryKey': 'trip_id'}) }}
select trip_id, fare, city from {{ ref('raw_trips') }}
{% if is_incremental() %} where city = 'oslo' {% endif %}
