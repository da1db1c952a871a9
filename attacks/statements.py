"""Hostile SQL: statements that try to write, crash, read the machine, or use up memory
and time.
"""

from __future__ import annotations

ENDLESS_NUMBERS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
NUMBERS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 5000) "
LONG_TEXT = "replace(hex(zeroblob(49500)), '00', 'a')"
"""49,500 letters."""
TEXTS = (
    f"WITH t(v, p) AS MATERIALIZED (SELECT {LONG_TEXT} || {LONG_TEXT}, "
    f"substr({LONG_TEXT}, 1, 490)) "
)
"""A row of a long text and the beginning of it."""
OBJECTS = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 13000), "
    "k(j) AS MATERIALIZED (SELECT json_group_object('k' || x, 1) FROM n) "
)
"""A row of an object of 13,000 members."""
CONTROLS = "replace(hex(zeroblob(9)), '0', char(1))"
"""A text of control characters, which JSON escapes."""

ENDLESS = f"{ENDLESS_NUMBERS}SELECT count(*) FROM n"
"""A statement that does not end."""


def straight(start: str, call: str, times: int, table: str) -> str:
    """Return a statement of many calls, during which SQLite does not check the time."""
    calls = " + ".join([call] * times)
    return f"{start} SELECT {calls} FROM {table}"


def joined(columns: str, times: int) -> str:
    """Return a statement that joins a table with itself."""
    tables = ", ".join(f"specs AS s{number}" for number in range(times))
    return f"SELECT {columns} FROM {tables}"


WRITES = """\
INSERT INTO specs(id) VALUES (1)
INSERT OR REPLACE INTO packages DEFAULT VALUES
UPDATE specs SET hash = 'x'
UPDATE OR IGNORE sqlite_master SET sql = ''
DELETE FROM specs
DELETE FROM sqlite_master
REPLACE INTO packages(id, name) VALUES (1, 'x')
DROP TABLE specs
DROP VIEW builds
DROP INDEX IF EXISTS x
ALTER TABLE specs RENAME TO x
ALTER TABLE specs ADD y
CREATE TABLE x (y)
CREATE TEMP TABLE x AS SELECT 1
CREATE TEMP VIEW x AS SELECT 1
CREATE VIRTUAL TABLE x USING fts5(y)
CREATE VIRTUAL TABLE x USING fts4(y)
CREATE VIRTUAL TABLE x USING rtree(a, b, c)
CREATE TRIGGER t AFTER INSERT ON specs BEGIN SELECT 1; END
WITH x AS (SELECT 1) DELETE FROM specs
WITH x AS (SELECT 1) INSERT INTO specs(id) SELECT 9
WITH x AS (SELECT 1) UPDATE specs SET hash = '' RETURNING *
BEGIN
BEGIN EXCLUSIVE
COMMIT
ROLLBACK
SAVEPOINT x
RELEASE x
VACUUM
VACUUM INTO '/tmp/attacked.db'
ANALYZE
REINDEX
PRAGMA optimize
ATTACH ':memory:' AS x
ATTACH '/tmp/attacked.db' AS x
ATTACH '/etc/passwd' AS x
DETACH main
INSERT INTO packages_fts(packages_fts) VALUES ('rebuild')
SELECT 1; DELETE FROM specs
INSERT INTO configurations_fts(configurations_fts, rank) VALUES ('merge', 1)
""".splitlines()
"""Statements that write; all of these must be refused."""
TELLING = """\
PRAGMA database_list
PRAGMA query_only = 0
PRAGMA writable_schema = 1
PRAGMA journal_mode = WAL
PRAGMA hard_heap_limit = 0
PRAGMA temp_store_directory = '/'
PRAGMA key = 'x'
PRAGMA cache_size = -9999999
PRAGMA mmap_size = 99999999999
PRAGMA page_size = 512
PRAGMA user_version = 9
PRAGMA trusted_schema = 1
PRAGMA module_list
PRAGMA compile_options
PRAGMA integrity_check
PRAGMA wal_checkpoint(TRUNCATE)
PRAGMA threads = 99
PRAGMA soft_heap_limit = 0
PRAGMA locking_mode = EXCLUSIVE
PRAGMA data_store_directory
SELECT * FROM pragma_database_list
SELECT * FROM Pragma_Database_List
SELECT file FROM "pragma_database_list"
SELECT * FROM pragma_module_list
SELECT * FROM pragma_compile_options
SELECT * FROM pragma_integrity_check
SELECT * FROM pragma_hard_heap_limit(0)
SELECT * FROM pragma_journal_mode('delete')
SELECT * FROM sqlite_stmt
SELECT sql FROM Sqlite_Stmt
SELECT * FROM dbstat
SELECT * FROM sqlite_dbpage
SELECT * FROM bytecode('SELECT 1')
SELECT * FROM tables_used('SELECT 1')
SELECT * FROM fsdir('/')
SELECT * FROM generate_series(1, 9e9)
SELECT * FROM completion('s')
SELECT * FROM sqlite_memstat
SELECT readfile('/etc/passwd')
SELECT writefile('/tmp/attacked', 'x')
SELECT edit('x')
SELECT load_extension('/tmp/x')
SELECT load_extension('libc.so.6', 'system')
SELECT shell('id')
SELECT sqlite_compileoption_get(1)
SELECT sqlite_log(1, 'attacked')
SELECT sqlite_offset(id) FROM specs
SELECT fts3_tokenizer('simple')
SELECT fts3_tokenizer('simple', x'4141414141414141')
SELECT token FROM fts3tokenize WHERE input = 'a'
SELECT * FROM fts3tokenize('simple', 'a')
SELECT fts5(x'0000000000000000')
SELECT fts5(1)
SELECT matchinfo(packages_fts) FROM packages_fts
SELECT offsets(packages_fts) FROM packages_fts
SELECT optimize(packages_fts) FROM packages_fts
SELECT rtreecheck('main', 'specs')
SELECT rtreenode(2, x'00')
SELECT rtreedepth(x'00')
SELECT highlight(packages_fts, 9, 'a', 'b') FROM packages_fts
SELECT bm25(1)
SELECT snippet(1, 2)
SELECT * FROM packages_fts('"')
SELECT * FROM packages_fts WHERE packages_fts MATCH 'a NEAR(b c'
SELECT * FROM packages_fts_data
SELECT * FROM packages_fts_config
SELECT * FROM main.sqlite_schema
SELECT * FROM temp.sqlite_master
SELECT * FROM sqlite_sequence
SELECT * FROM sqlite_stat1
SELECT 1 ORDER BY (SELECT file FROM pragma_database_list)
EXPLAIN SELECT * FROM specs
WITH x AS (SELECT * FROM pragma_database_list) SELECT * FROM x
EXPLAIN DELETE FROM specs
SELECT * FROM specs WHERE EXISTS (SELECT 1 FROM sqlite_stmt)
SELECT last_insert_rowid(), changes()
SELECT /* */ 1 -- ;
SELECT ?
SELECT :_actor_id
SELECT :_header_cookie
SELECT $a(b)
SELECT @x
SELECT likelihood(1, 2)
SELECT printf('%n%s%s%s%s')
SELECT format('%*d', 2147483647, 1)
SELECT strftime('%s', 1e308)
SELECT abs(-9223372036854775808)
SELECT 9223372036854775807 + 1
SELECT substr(x'00', -9223372036854775808, 9223372036854775807)
SELECT char(1114112, -1, 55296)
SELECT unicode(char(0))
SELECT 'a' || char(0) || 'b'
SELECT x'ff' || 'a'
SELECT cast(x'ff' AS TEXT)
SELECT json(char(0))
SELECT json_extract('[1]', '$[' || 99999999999 || ']')
SELECT json('[' || '1')
SELECT spec_match('hdf5', 1e308)
SELECT spec_match(x'ff', x'ff')
SELECT spec_error(char(0))
SELECT spec_match(NULL, NULL)
SELECT spec_match('a')
SELECT spec_error(zeroblob(199999))
""".splitlines()
"""Statements that tell about the machine, or call what may crash."""
LARGE = (
    # Large values.
    "SELECT zeroblob(900000000)",
    "SELECT randomblob(900000000)",
    "SELECT printf('%.*c', 900000000, 'x')",
    "SELECT hex(zeroblob(199999))",
    "SELECT replace(replace(hex(zeroblob(40000)), '0', '00'), '0', '0000')",
    "SELECT " + ", ".join(["randomblob(199000)"] * 190),
    # Many rows, all of which SQLite or Datasette may hold.
    f"{ENDLESS_NUMBERS}SELECT randomblob(199000) FROM n",
    f"{ENDLESS_NUMBERS}SELECT {', '.join(['x'] * 200)} FROM n",
    f"{ENDLESS_NUMBERS}SELECT group_concat(x) FROM n",
    f"{ENDLESS_NUMBERS}SELECT json_group_array(x) FROM n",
    f"{ENDLESS_NUMBERS}SELECT json_group_object(x, x) FROM n",
    f"{ENDLESS_NUMBERS}SELECT randomblob(9000) AS b FROM n ORDER BY b",
    f"{ENDLESS_NUMBERS}SELECT count(*) FROM (SELECT DISTINCT randomblob(9000) FROM n)",
    f"{ENDLESS_NUMBERS}SELECT sum(x) OVER (ORDER BY randomblob(900)) FROM n",
    f"{ENDLESS_NUMBERS}SELECT count(*) FROM n AS a JOIN n AS b",
    "WITH RECURSIVE t(v) AS (SELECT 'xxxx' UNION ALL SELECT v || v FROM t)"
    " SELECT max(v) FROM t",
    # Many tables.
    joined("*", 60),
    joined("count(*)", 20),
    joined("*", 100),
    # Long statements.
    "SELECT " + "(" * 900 + "1" + ")" * 900,
    "SELECT " + "+".join(["1"] * 5000),
    "SELECT " + ", ".join(f"1 AS c{number}" for number in range(2700)),
    "SELECT 1 WHERE 1 IN (" + ",".join(map(str, range(5_000))) + ")",
    " UNION ALL ".join(["SELECT 1"] * 400),
    # Long patterns and deep values.
    "SELECT '" + "a" * 9000 + "' LIKE '" + "%a" * 4000 + "b'",
    "SELECT json('" + "[" * 9000 + "')",
    "SELECT count(*) FROM json_tree('" + "[" * 900 + "]" * 900 + "')",
    "SELECT count(*) FROM configurations_fts WHERE configurations_fts MATCH '"
    + " OR ".join(["h*", "g*", "b*", "l*"] * 900)
    + "'",
    # Texts that take six times the space as JSON.
    "SELECT replace(hex(zeroblob(99000)), '0', char(1)) AS a",
    f"{NUMBERS}SELECT {', '.join([CONTROLS] * 190)} FROM n",
)
"""Statements that use up memory."""
VERSIONS = ",".join(f"{number}:" for number in range(90))
SLOW = (
    ENDLESS,
    # Calls that take long by themselves.
    straight(TEXTS, f"length(trim(v, {LONG_TEXT} || 'b'))", 20, "t"),
    straight(TEXTS, "(v LIKE '%' || p || 'b')", 150, "t"),
    straight(TEXTS, "(v GLOB '*' || p || 'b')", 150, "t"),
    straight(TEXTS, f"instr(v || p, {LONG_TEXT} || 'b')", 100, "t"),
    straight(OBJECTS, "length(json_patch(j, j))", 40, "k"),
    straight(OBJECTS, "length(json_set(j, '$.k1', j))", 40, "k"),
    f"{ENDLESS_NUMBERS}SELECT sum({LONG_TEXT} LIKE '%aab' || x) FROM n",
    # Our own functions.
    f"{ENDLESS_NUMBERS}SELECT sum(spec_match('%gcc@' || x || ':', x)) FROM n",
    f"{ENDLESS_NUMBERS}SELECT spec_error('hdf5@' || x) FROM n",
    f"SELECT spec_match('@{VERSIONS}', id) FROM configurations",
    # Views joined with themselves.
    "SELECT count(*) FROM build_listings AS a, build_listings AS b, build_listings AS c",
    "SELECT count(*) FROM builds AS a JOIN builds AS b"
    " ON a.variants LIKE '%' || b.hash || '%'",
)
"""Statements that use up time."""
