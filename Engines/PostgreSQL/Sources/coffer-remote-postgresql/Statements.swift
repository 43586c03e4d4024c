/// The SQL. The base is the whole file as it was last published, and each row of `change` adds to it: bytes at its end,
/// and a page that is written over it.
enum Statements {
  /// For whoever may create them; the recipe has the same.
  static let tables = [
    "CREATE SCHEMA IF NOT EXISTS coffer",
    """
    CREATE TABLE IF NOT EXISTS coffer.vault (
      name text PRIMARY KEY, last bigint NOT NULL, id text NOT NULL,
      base bigint NOT NULL, base_id text NOT NULL, bytes bytea NOT NULL)
    """,
    """
    CREATE TABLE IF NOT EXISTS coffer.change (
      vault text, n bigint, id text NOT NULL, data_at integer NOT NULL, data bytea NOT NULL,
      page_at integer NOT NULL, page bytea NOT NULL, PRIMARY KEY (vault, n))
    """,
  ]

  /// True, and raises `synchronous_commit` for this transaction if it is off: an acknowledged change is on the disk.
  private static let isDurable = """
    CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) \
    ELSE '' END IS NOT NULL
    """

  /// $1: name, $2 and $3: the number and the id of the known version, or 0 and nothing. One statement, because two
  /// would see two states.
  static let read = """
    SELECT v.last::text, v.id, CASE WHEN k.n IS NULL THEN v.bytes END, c.at::text, c.data,
      p.at[1]::text, p.pages[1], p.at[2]::text, p.pages[2], p.at[3]::text, p.pages[3],
      (extract(epoch FROM clock_timestamp()) * 1000000)::bigint::text
    FROM coffer.vault v
    LEFT JOIN LATERAL (
      SELECT v.base AS n WHERE v.base = $2::bigint AND v.base_id = $3
      UNION ALL SELECT n FROM coffer.change WHERE vault = v.name AND n = $2::bigint AND n > v.base AND id = $3) k ON true
    LEFT JOIN LATERAL (
      SELECT min(data_at) AS at, string_agg(data, ''::bytea ORDER BY n) AS data FROM coffer.change
      WHERE vault = v.name AND n > coalesce(k.n, v.base) AND n <= v.last) c ON true
    LEFT JOIN LATERAL (
      SELECT array_agg(page_at) AS at, array_agg(page) AS pages FROM (
        SELECT DISTINCT ON (page_at) page_at, page FROM coffer.change
        WHERE vault = v.name AND n > coalesce(k.n, v.base) AND n <= v.last ORDER BY page_at, n DESC) l) p ON true
    WHERE v.name = $1
    """

  /// $1: name, $2: the new id, $3: the file.
  static let create = """
    WITH left_behind AS (
      DELETE FROM coffer.change WHERE vault = $1 AND NOT EXISTS (SELECT FROM coffer.vault WHERE name = $1))
    INSERT INTO coffer.vault (name, last, id, base, base_id, bytes)
    SELECT $1, 1, $2, 1, $2, $3::bytea WHERE \(isDurable) ON CONFLICT DO NOTHING RETURNING last::text
    """

  /// $1: name, $2: the new id, $3 and $4: the number and the id of the known version, $5 and $6: the bytes and their
  /// offset, $7 and $8: the page and its offset. The head and the row in one statement: the row's key alone would
  /// accept a late change after a whole file was published.
  ///
  /// A row without bytes is superseded by the next one with the same page. Leases make one every few seconds. The last
  /// ones stay, because a reader that knows one of them gets only what is newer.
  static let append = """
    WITH head AS (
      UPDATE coffer.vault SET last = last + 1, id = $2
      WHERE name = $1 AND last = $3::bigint AND id = $4 AND \(isDurable) RETURNING last),
    superseded AS (
      DELETE FROM coffer.change USING head
      WHERE vault = $1 AND n < head.last - 100 AND data = ''::bytea AND page_at = $8::integer)
    INSERT INTO coffer.change (vault, n, id, data_at, data, page_at, page)
    SELECT $1, last, $2, $6::integer, $5::bytea, $8::integer, $7::bytea FROM head RETURNING n::text
    """

  /// $1 to $4 as for an append, $5: the file.
  static let replace = """
    WITH head AS (
      UPDATE coffer.vault SET last = last + 1, id = $2, base = last + 1, base_id = $2, bytes = $5::bytea
      WHERE name = $1 AND last = $3::bigint AND id = $4 AND \(isDurable) RETURNING last),
    gone AS (DELETE FROM coffer.change USING head WHERE vault = $1)
    SELECT last::text FROM head
    """

  /// $1 to $3 as for a read.
  static let remove = """
    WITH head AS (DELETE FROM coffer.vault WHERE name = $1 AND last = $2::bigint AND id = $3 RETURNING name),
    gone AS (DELETE FROM coffer.change USING head WHERE vault = name)
    SELECT name FROM head
    """

  /// A record of its own in the write-ahead log: when its commit returns, every commit that could be read before is as
  /// safe as `synchronous_commit` says. A query would not wait.
  static let confirm = """
    SELECT pg_logical_emit_message(true, 'coffer', '')::text WHERE \(isDurable)
    """

  /// The other writers of the vault wait until this transaction ends, which it does by itself if its writer is gone.
  static let turn = [
    "BEGIN ISOLATION LEVEL READ COMMITTED", "SET LOCAL idle_in_transaction_session_timeout = '5s'",
    "SELECT name FROM coffer.vault WHERE name = $1 FOR UPDATE",
  ]

  static let describe = """
    SELECT 'PostgreSQL ' || current_setting('server_version') || ', as ' || current_user
      || CASE WHEN to_regclass('coffer.vault') IS NULL THEN ', without tables for vaults'
         WHEN has_table_privilege('coffer.vault', 'UPDATE') THEN ', which may read and change vaults'
         WHEN has_table_privilege('coffer.vault', 'SELECT') THEN ', which may only read vaults'
         ELSE ', which may not read vaults' END,
      (extract(epoch FROM clock_timestamp()) * 1000000)::bigint::text
    """
}
