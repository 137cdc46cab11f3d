import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { UsageError } from '../../errors.ts'
import { sandboxConfiguration } from '../../sandbox/configuration.ts'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../sandbox/server.ts'
import type { Runtime } from '../runtime.ts'

export interface SandboxCommandOptions extends Omit<SandboxOptions, 'live' | 'now'> {
  live?: boolean
  writeConfig?: string
}

/** `sandbox`: a made-up Administration API until SIGTERM, SIGINT or SIGHUP. */
export async function sandbox(runtime: Runtime, options: SandboxCommandOptions): Promise<number> {
  const { stdout, stderr, signal, now } = runtime
  const file = options.writeConfig === undefined ? null : path.resolve(runtime.cwd, options.writeConfig)
  if (file !== null) assertOurs(file)
  const server = await listen({ ...options, live: options.live === true, now })
  try {
    if (file !== null) writeConfig(file, sandboxConfiguration(server))
    const { url, organizations } = server
    if (!stdout.isTTY) stdout.write(`${JSON.stringify({ url, organizations })}\n`)
    else {
      const names = organizations.map(({ name }) => name).join(', ')
      stderr.write(`A made-up Administration API listens at ${url} for ${names}. Ctrl-C stops it.\n`)
      if (options.writeConfig !== undefined) {
        stderr.write(`In another terminal: admin-mirror sync --config ${options.writeConfig}\n`)
      } else stderr.write('With --write-config FILE it writes a configuration that uses it.\n')
    }
    if (!signal.aborted) await once(signal, 'abort')
    return 0
  } finally {
    await server.close()
  }
}

/** Somebody's own configuration is not to be lost: only what a sandbox wrote may be written over. */
function assertOurs(file: string): void {
  const text = readText(file)
  if (text === null || text === '') return
  const [ours] = sandboxConfiguration({ url: '', organizations: [] }).split('\n')
  if (text.split(/\r?\n/)[0] === ours) return
  throw new UsageError(
    `--write-config ${file} is there already and was not written by the sandbox; name another file, or move it away`,
  )
}

/** Null where there is nothing to lose; what is no file is refused when it is written. */
function readText(file: string): string | null {
  try {
    return fs.statSync(file).isFile() ? fs.readFileSync(file, 'utf8') : null
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return null
    throw new UsageError(
      `--write-config ${file} cannot be read: ${error instanceof Error ? error.message : ''}`,
    )
  }
}

function writeConfig(file: string, text: string): void {
  try {
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, text)
  } catch (error) {
    if (!(error instanceof Error)) throw error
    throw new UsageError(`--write-config ${file} cannot be written: ${error.message}`)
  }
}

async function listen(options: Parameters<typeof startSandbox>[0]): Promise<Sandbox> {
  try {
    return await startSandbox(options)
  } catch (error) {
    if (
      error instanceof Error &&
      'code' in error &&
      (error.code === 'EADDRINUSE' || error.code === 'EACCES')
    ) {
      throw new UsageError(
        `--port ${options.port} cannot be used (${error.code}); choose another one, or 0 for any that is free`,
      )
    }
    throw error
  }
}
