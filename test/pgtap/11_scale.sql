-- How amounts and rates are represented: the scale and the exact rate for each capacity and refill of the table.
\set content `cat test/vectors/scale.tsv`
BEGIN;
\ir helpers.psql
CREATE TABLE helpers.scales AS
    SELECT row_number() OVER () AS position, f[1]::float8 AS capacity, f[2]::float8 AS rate, f[3] AS scale, f[4] AS n, f[5] AS d
    FROM regexp_split_to_table(:'content', '\n') AS line, string_to_array(line, E'\t') AS f
    WHERE line <> '' AND line NOT LIKE 'capacity%';

SELECT plan((SELECT count(*)::int + 1 FROM scales));

SELECT cmp_ok((SELECT count(*) FROM scales), '>', 30::bigint, 'the table has been read');

SELECT taskq.register_token_bucket('bucket ' || position, capacity, rate) FROM scales WHERE scale NOT LIKE 'refuse%' \g /dev/null

SELECT is(format('%s %s/%s', l.scale, l.rate_n, l.rate_d), format('%s %s/%s', s.scale, n, d),
          format('capacity %s at %s per second counts in 10^-%s units and refills %s/%s of them per microsecond', s.capacity, rate, s.scale, n, d))
FROM scales AS s JOIN taskq.rate_limits AS l ON l.name = 'bucket ' || position ORDER BY position;

SELECT throws_ok(format('SELECT taskq.register_token_bucket(%L, %L, %L)', 'bucket ' || position, capacity, rate), '22023', NULL,
                 format('capacity %s at %s per second is refused', capacity, rate))
FROM scales WHERE scale LIKE 'refuse%' ORDER BY position;

SELECT finish();
ROLLBACK;
