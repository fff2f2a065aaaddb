{% snapshot fares %}
{{ config(target_schema='lake', unique_key='trip_id', strategy='timestamp', updated_at='seen_at', file_format='hudi') }}
select trip_id, fare, timestamp_seconds(updated_at) as seen_at from {{ ref('raw_trips') }}
{% endsnapshot %}
