{{ config(materialized='incremental', incremental_strategy='append', file_format='hudi') }}
select trip_id, fare, updated_at from {{ ref('raw_trips') }}
{% if is_incremental() %} where updated_at > (select max(updated_at) from {{ this }}) {% endif %}
