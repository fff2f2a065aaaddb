{# dbt-spark makes unique_key the record key. A snapshot holds several versions of one: its rows are told by dbt_scd_id. #}
{% macro spark__options_clause() %}
  {%- set options = dict(config.get('options') or {}) -%}
  {%- set key = 'dbt_scd_id' if model.resource_type == 'snapshot' else config.get('unique_key') -%}
  {%- if config.get('file_format') == 'hudi' and key and 'primaryKey' not in options -%}
    {%- do options.update({'primaryKey': key if key is string else key | join(',')}) -%}
  {%- endif -%}
  {%- if options %}
    options (
    {%- for name, value in options.items() %}{{ name }} "{{ value }}"{{ ", " if not loop.last }}{% endfor -%}
    )
  {%- endif -%}
{% endmacro %}
