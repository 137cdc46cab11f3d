import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { systemCode, UsageError } from '../../errors.ts'
import type { SandboxOptions } from '../../sandbox/api.ts'
import { OURS, type Sandbox, sandboxConfiguration, startSandbox } from '../../sandbox/server.ts'
import type { Globals, Runtime } from '../runtime.ts'

interface Options extends Omit<SandboxOptions, 'live' | 'now'> {
  port: number
  live?: boolean
  writeConfig?: string
}

/** `sandbox`: a made-up Administration API until SIGTERM, SIGINT or SIGHUP. */
export async function run(runtime: Runtime, _globals: Globals, options: Options): Promise<number> {
  const { stdout, stderr, signal, now, cwd } = runtime
  const { live = false, writeConfig, ...others } = options
  const file = writeConfig === undefined ? null : path.resolve(cwd, writeConfig)
  if (file !== null) assertOurs(file)
  const server = await listen({ ...others, live, now })
  try {
    if (file !== null) writeFile(file, sandboxConfiguration(server))
    const { url, organizations } = server
    if (stdout.isTTY) {
      stderr.write(
        `A made-up Administration API listens at ${url} for ${organizations.map(({ name }) => name).join(', ')}. Ctrl-C stops it.\n` +
          (writeConfig === undefined
            ? 'With --write-config FILE it writes a configuration that uses it.\n'
            : `In another terminal: admin-mirror sync --config ${writeConfig}\n`),
      )
    } else stdout.write(`${JSON.stringify({ url, organizations })}\n`)
    if (!signal.aborted) await once(signal, 'abort')
    return 0
  } finally {
    await server.close()
  }
}

/** Throws UsageError if the file exists and no sandbox wrote it: it may be the user's own configuration. */
function assertOurs(file: string): void {
  const stat = fs.statSync(file, { throwIfNoEntry: false })
  if (!stat || (stat.isFile() && (stat.size === 0 || fs.readFileSync(file, 'utf8').startsWith(OURS)))) return
  throw new UsageError(
    `--write-config ${file} is there already and was not written by the sandbox; name another file, or move it away`,
  )
}

function writeFile(file: string, text: string): void {
  try {
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, text)
  } catch (error) {
    throw new UsageError(`--write-config ${file} cannot be written (${systemCode(error)})`)
  }
}

async function listen(options: Parameters<typeof startSandbox>[0]): Promise<Sandbox> {
  try {
    return await startSandbox(options)
  } catch (error) {
    const code = systemCode(error)
    if (code !== 'EADDRINUSE' && code !== 'EACCES') throw error
    throw new UsageError(
      `--port ${options.port} cannot be used (${code}); choose another one, or 0 for any that is free`,
    )
  }
}
