{{ config(materialized='table', file_format='hudi', unique_key='rider', options={'primaryKey': 'rider'}) }}
select rider, count(*) as trips, sum(fare) as fares from {{ ref('raw_trips') }} group by rider
