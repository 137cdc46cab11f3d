import { spawnSync } from 'node:child_process'
import process from 'node:process'
import { parseArgs } from 'node:util'

// npm run crash [-- --store postgres]: kills processes for minutes, on a mirror in a file or on a PostgreSQL server.

const FORMS = {
  sqlite: {
    files: ['test/stories/crash-'],
    env: { CRASHES: '200' },
  },
  postgres: { files: ['test/stories/postgres/crash'], env: { CRASH_MINUTES: '10' } },
}

const { values } = parseArgs({ options: { store: { type: 'string', default: 'sqlite' } } })
const form = Object.entries(FORMS).find(([name]) => name === values.store)?.[1]
if (!form) {
  process.stderr.write(`there is no store ${values.store}; there are: ${Object.keys(FORMS).join(', ')}\n`)
  process.exit(2)
}
const { status } = spawnSync('npx', ['vitest', 'run', '--config', 'test/vitest.config.ts', ...form.files], {
  env: { LONG: '1', ...form.env, ...process.env },
  stdio: 'inherit',
})
process.exitCode = status ?? 1
