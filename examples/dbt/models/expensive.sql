{{ config(materialized='view') }}
select * from {{ ref('trips_merged') }} where fare > 15
