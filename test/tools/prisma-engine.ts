/**
 * Prisma's schema engine, in WebAssembly, which `prisma migrate status`, `db pull` and `migrate diff` use. Its native
 * form is downloaded at run time, and a test must not depend on that.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { PrismaPg } from '@prisma/adapter-pg'
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  type SqlMigrationAwareDriverAdapterFactory,
} from '@prisma/driver-adapter-utils'
import * as engineModule from '@prisma/schema-engine-wasm/schema_engine_bg'
import pg from 'pg'
import { releaseLater } from './release.ts'
import { findFiles, readSource } from './source-files.ts'

// The part of WebAssembly that Node has. Its types are only in the DOM's.
declare const WebAssembly: {
  instantiate(
    bytes: Uint8Array,
    imports: Record<string, unknown>,
  ): Promise<{ instance: { exports: unknown } }>
}

const schema = { path: 'schema.prisma', content: readSource('prisma/schema.prisma') }
const filters = { externalTables: [], externalEnums: [] }

export async function openPrismaEngine(url: string) {
  await loadEngine()
  const factory = bindMigrationAwareSqlAdapterFactory(await readingChars(url))
  const models: [string, string][] = [[schema.path, schema.content]]
  const engine = await engineModule.SchemaEngine.new({ datamodels: models }, () => {}, factory)
  return {
    /** The migrations that are missing, failed or changed: `prisma migrate status`. */
    status: () =>
      engine.diagnoseMigrationHistory({
        migrationsList: migrationsList(),
        optInToShadowDatabase: false,
        filters,
      }),
    /** The SQL that would change the database into schema.prisma, and the changes of `prisma db pull`. */
    async drift(): Promise<string> {
      const { stdout } = await engine.diff({
        from: { tag: 'schemaDatasource', files: [schema], configDir: '.' },
        to: { tag: 'schemaDatamodel', files: [schema] },
        script: true,
        exitCode: null,
        filters,
      })
      return stdout ?? ''
    },
  }
}

const migrationsList = () => ({
  baseDir: 'prisma/migrations',
  lockfile: {
    path: 'migration_lock.toml',
    content: readSource('prisma/migrations/migration_lock.toml'),
  },
  shadowDbInitScript: '',
  migrationDirectories: findFiles('prisma/migrations/*/migration.sql').map((file) => ({
    path: file.split('/')[2] ?? '',
    migrationFile: {
      path: 'migration.sql',
      content: { tag: 'ok' as const, value: readSource(file) },
    },
  })),
})

let isLoaded = false

/** Node loads no WebAssembly by import: its exports are handed to the glue code here. */
async function loadEngine(): Promise<void> {
  if (isLoaded) return
  const glue = createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm/schema_engine_bg')
  const { instance } = await WebAssembly.instantiate(readFileSync(glue.replace(/\.js$/, '.wasm')), {
    './schema_engine_bg.js': engineModule,
  })
  const { __wbg_set_wasm } = engineModule as unknown as { __wbg_set_wasm(exports: unknown): void }
  __wbg_set_wasm(instance.exports)
  const { __wbindgen_start } = instance.exports as { __wbindgen_start(): void }
  __wbindgen_start()
  isLoaded = true
}

const charOid = 18
const textOid = 25

/**
 * The adapter can't read PostgreSQL's internal type "char", which is frequent in the catalogues that the engine
 * reads.
 */
async function readingChars(url: string): Promise<SqlMigrationAwareDriverAdapterFactory> {
  const charColumns = new Set<string>()
  class Pool extends pg.Pool {
    override query = (async (...args: Parameters<pg.Pool['query']>) => {
      const result = (await super.query(...args)) as unknown as pg.QueryResult
      for (const field of result.fields ?? []) {
        if (field.dataTypeID !== charOid) continue
        field.dataTypeID = textOid
        charColumns.add(field.name)
      }
      return result
    }) as unknown as pg.Pool['query']
  }
  // Its native form reads times in any DateStyle, and uses the schema of the address.
  const wanted = new URL(url).searchParams.get('schema')
  const options = `-c datestyle=ISO ${wanted ? `-c search_path=${wanted}` : ''}`
  const pool = new Pool({ connectionString: url, max: 1, options })
  pool.on('error', () => {})
  releaseLater(() => pool.end())
  const { rows } = await pool.query('SELECT current_schema() AS schema')
  const factory = new PrismaPg(pool, rows[0])
  const connect = factory.connect.bind(factory)
  factory.connect = async () => {
    const adapter = await connect()
    const queryRaw = adapter.queryRaw.bind(adapter)
    adapter.queryRaw = async (query) => {
      charColumns.clear()
      const result = await queryRaw(query)
      result.columnTypes = result.columnTypes.map((type, index) =>
        charColumns.has(result.columnNames[index] ?? '') ? ColumnTypeEnum.Character : type,
      )
      return result
    }
    return adapter
  }
  return factory
}
