/**
 * The schema of Postern's tables: the one that DATABASE_URL names by `?schema=`, else the first in the role's
 * `search_path`. It comes first in the search path of each connection. Prisma names the schema in its
 * statements, so it gets the same name.
 */
import type pg from 'pg'

/** Makes the connection use the schema that has the tables, and returns its name. Throws if there are no tables. */
export async function enterSchema(
  client: pg.ClientBase,
  wanted: string | undefined,
): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT name, ${pathSql('name')} FROM (${findSql}) AS found`,
    [wanted ?? null],
  )
  const [found] = rows
  if (!found) throw Object.assign(new Error('the tables do not exist'), { code: 'NO_TABLES' })
  return found.name
}

/**
 * For migrations: makes the connection use the schema that has the tables or will get them. A wanted schema is made
 * if it is missing. Otherwise it is the first schema of the search path in which the role can create tables.
 */
export async function prepareSchema(
  client: pg.ClientBase,
  wanted: string | undefined,
): Promise<void> {
  const { rows: found } = await client.query<{ name: string }>(findSql, [wanted ?? null])
  const { rows } = await client.query(targetSql, [found[0]?.name ?? wanted ?? null])
  const { target, path, schemas, exists, quoted } = rows[0]
  if (target === null) {
    if (schemas === '') throw new Error(`no schema of the search_path exists: ${path}`)
    throw Object.assign(new Error(`permission denied for schema ${schemas}`), { code: '42501' })
  }
  // `IF NOT EXISTS` would need the right to create schemas also for a schema that exists.
  if (!exists) await client.query(`CREATE SCHEMA ${quoted}`)
  await client.query(`SELECT ${pathSql('$1')}`, [target])
}

/** Another product can have a table `notice`, or Prisma's table of migrations. */
const findSql = `
  SELECT name
  FROM unnest(CASE WHEN $1::text IS NULL THEN current_schemas(false)::text[] ELSE ARRAY[$1] END) WITH ORDINALITY AS path (name, place)
  WHERE to_regclass(quote_ident(name) || '.notice_default') IS NOT NULL
  ORDER BY place LIMIT 1`

const targetSql = `
  SELECT target, quote_ident(target) AS quoted, current_setting('search_path') AS path,
    array_to_string(current_schemas(false), ', ') AS schemas,
    EXISTS (SELECT FROM pg_namespace WHERE nspname = target) AS exists
  FROM coalesce($1::text, (
    SELECT name FROM unnest(current_schemas(false)) WITH ORDINALITY AS path (name, place)
    WHERE has_schema_privilege(name, 'CREATE') ORDER BY place LIMIT 1)::text) AS target`

/** The rest of the path stays: functions of extensions can be there. */
const pathSql = (schema: string) =>
  `set_config('search_path', quote_ident(${schema}) || ', ' || current_setting('search_path'), false)`
