-- Every object of the extension. A change here is a change of the interface.
SET timezone = 'UTC';
\pset format unaligned
\set members 'SELECT classid, objid FROM pg_depend WHERE refclassid = ''pg_extension''::regclass AND deptype = ''e'' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = ''taskq_ratelimit'')'
SELECT extname, extversion, extnamespace::regnamespace, extrelocatable, (SELECT array_agg(c::regclass ORDER BY c::regclass::text) FROM unnest(extconfig) AS c) AS dumped, extcondition FROM pg_extension WHERE extname = 'taskq_ratelimit';

-- Functions and procedures: what they take and give, and how they are labelled.
SELECT p.oid::regprocedure AS function, p.prokind AS kind, pg_get_function_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result, l.lanname AS language, p.provolatile AS volatile,
       p.proparallel AS parallel, p.proisstrict AS strict, p.prosecdef AS definer, p.proleakproof AS leakproof, p.procost AS cost, p.prorows AS rows, p.proconfig AS config,
       (SELECT coalesce(string_agg(grantee::regrole || ' ' || privilege_type, ', ' ORDER BY 1), 'nobody') FROM aclexplode(p.proacl) WHERE grantee <> p.proowner) AS others_may, obj_description(p.oid, 'pg_proc') AS comment
FROM (:members) AS m JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND objid = p.oid JOIN pg_language AS l ON l.oid = p.prolang ORDER BY p.oid::regprocedure::text COLLATE "C" \gx

-- Tables, views and composite types, column by column.
SELECT c.relname AS relation, c.relkind AS kind, a.attname AS "column", format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS not_null, pg_get_expr(d.adbin, d.adrelid) AS "default", col_description(c.oid, a.attnum) AS comment
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'taskq'::regnamespace AND c.relkind IN ('r', 'v', 'c') ORDER BY c.relname COLLATE "C", a.attnum;
SELECT c.relname AS relation, c.relkind AS kind, c.relpersistence AS persistence, c.reloptions AS options,
       (SELECT coalesce(string_agg(grantee::regrole || ' ' || privilege_type, ', ' ORDER BY 1), 'nobody') FROM aclexplode(c.relacl) WHERE grantee <> c.relowner) AS others_may, obj_description(c.oid, 'pg_class') AS comment
FROM pg_class AS c WHERE c.relnamespace = 'taskq'::regnamespace AND c.relkind IN ('r', 'v', 'c', 'S') ORDER BY c.relname COLLATE "C";

-- Constraints, indexes and triggers of the tables. No index has a column that a decision changes.
SELECT conrelid::regclass AS "table", conname AS "constraint", pg_get_constraintdef(oid) AS definition FROM pg_constraint WHERE connamespace = 'taskq'::regnamespace ORDER BY conrelid::regclass::text COLLATE "C", conname;
SELECT indrelid::regclass AS "table", indexrelid::regclass AS index, pg_get_indexdef(indexrelid) AS definition FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid WHERE c.relnamespace = 'taskq'::regnamespace ORDER BY c.relname COLLATE "C";
SELECT tgname AS trigger, tgenabled AS enabled, pg_get_triggerdef(oid) AS definition FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'taskq'::regnamespace) AND NOT tgisinternal ORDER BY 1;

-- Everything has a comment: members of the extension, columns, triggers.
SELECT count(*) > 40 AS members_found FROM (:members) AS m;
SELECT pg_describe_object(classid, objid, 0) AS without_comment FROM (:members) AS m
WHERE obj_description(objid, classid::regclass::name) IS NULL AND NOT (classid = 'pg_type'::regclass AND EXISTS (SELECT FROM pg_type WHERE oid = objid AND (typelem <> 0 OR typrelid <> 0 AND obj_description(typrelid, 'pg_class') IS NOT NULL)));
SELECT c.relname || '.' || a.attname AS column_without_comment FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'taskq'::regnamespace AND c.relkind IN ('r', 'v', 'c') AND col_description(c.oid, a.attnum) IS NULL ORDER BY 1;
SELECT tgname AS trigger_without_comment FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'taskq'::regnamespace) AND NOT tgisinternal AND obj_description(oid, 'pg_trigger') IS NULL;

-- All functions in C are in our library.
SELECT count(*) AS c_functions, count(*) FILTER (WHERE probin = '$libdir/taskq_ratelimit' AND prosrc LIKE 'taskq\_%') AS in_our_library FROM pg_proc WHERE pronamespace = 'taskq'::regnamespace AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'c');
