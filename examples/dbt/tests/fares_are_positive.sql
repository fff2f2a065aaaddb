select * from {{ ref('trips_merged') }} where fare <= 0
