{{ config(materialized='incremental', incremental_strategy='merge', unique_key='trip_id', file_format='hudi',
          options={'type': 'cow', 'primaryKey': 'trip_id', 'preCombineField': 'updated_at'}) }}
select trip_id, rider, city, fare, updated_at from {{ ref('raw_trips') }}
{% if is_incremental() %} where updated_at > (select max(updated_at) from {{ this }}) {% endif %}
