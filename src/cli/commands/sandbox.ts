import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { systemCode, UsageError } from '../../errors.ts'
import type { SandboxOptions } from '../../sandbox/api.ts'
import { OURS, sandboxConfiguration, startSandbox } from '../../sandbox/server.ts'
import type { Globals, Runtime } from '../runtime.ts'

interface Options extends Omit<SandboxOptions, 'live' | 'now'> {
  port: number
  live?: boolean
  writeConfig?: string
}

/** `sandbox`: a made-up Administration API until SIGTERM, SIGINT or SIGHUP. */
export async function run(runtime: Runtime, _globals: Globals, options: Options): Promise<number> {
  const { stdout, stderr, signal, now, cwd } = runtime
  const { live = false, port, writeConfig, ...others } = options
  const file = writeConfig === undefined ? null : path.resolve(cwd, writeConfig)
  if (file !== null && !mayWrite(file))
    throw new UsageError(
      `--write-config ${file} is there already and was not written by the sandbox; name another file, or move it away`,
    )
  const sandbox = await startSandbox({ ...others, live, port, now }).catch((error: unknown) => {
    const code = systemCode(error)
    if (code !== 'EADDRINUSE' && code !== 'EACCES') throw error
    throw new UsageError(
      `--port ${port} cannot be used (${code}); choose another one, or 0 for any that is free`,
    )
  })
  try {
    const { url, organizations } = sandbox
    if (file !== null) writeFile(file, sandboxConfiguration(sandbox))
    if (stdout.isTTY) {
      const names = organizations.map(({ name }) => name).join(', ')
      const next = writeConfig
        ? `In another terminal: admin-mirror sync --config ${writeConfig}`
        : 'With --write-config FILE it writes a configuration that uses it.'
      stderr.write(`A made-up Administration API listens at ${url} for ${names}. Ctrl-C stops it.\n${next}\n`)
    } else stdout.write(`${JSON.stringify({ url, organizations })}\n`)
    if (!signal.aborted) await once(signal, 'abort')
    return 0
  } finally {
    await sandbox.close()
  }
}

/** Whether there is no such file, or a sandbox wrote it: it may be the user's own configuration. */
function mayWrite(file: string): boolean {
  const stat = fs.statSync(file, { throwIfNoEntry: false })
  return !stat || (stat.isFile() && (stat.size === 0 || fs.readFileSync(file, 'utf8').startsWith(OURS)))
}

function writeFile(file: string, text: string): void {
  try {
    fs.mkdirSync(path.dirname(file), { recursive: true })
    // Like a real one, which holds tokens.
    fs.writeFileSync(file, text, { mode: 0o600 })
  } catch (error) {
    throw new UsageError(`--write-config ${file} cannot be written (${systemCode(error)})`)
  }
}
