import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { systemCode, UsageError } from '../../errors.ts'
import type { SandboxOptions } from '../../sandbox/api.ts'
import { isOurs, sandboxConfiguration, startSandbox } from '../../sandbox/server.ts'
import type { Runtime } from '../runtime.ts'

interface Options extends Omit<SandboxOptions, 'live' | 'now'> {
  port: number
  live?: boolean
  writeConfig?: string
}

/** `sandbox`: a made-up Administration API until SIGTERM, SIGINT or SIGHUP. */
export async function run(runtime: Runtime, options: Options): Promise<number> {
  const { stdout, stderr, signal, now, cwd } = runtime
  const { live = false, port, writeConfig, ...others } = options
  const file = writeConfig === undefined ? null : path.resolve(cwd, writeConfig)
  if (file !== null && !isOurs(file))
    throw new UsageError(
      `--write-config ${file} is there already and was not written by the sandbox; name another file, or move it away`,
    )
  const sandbox = await startSandbox({ ...others, live, port, now }).catch((error: unknown) => {
    throw new UsageError(`--port ${port} cannot be used (${systemCode(error)}); choose another one, or 0`)
  })
  try {
    const { url, organizations } = sandbox
    if (file !== null) {
      try {
        fs.mkdirSync(path.dirname(file), { recursive: true })
        // Like a real one, which holds tokens.
        fs.writeFileSync(file, sandboxConfiguration(sandbox), { mode: 0o600 })
      } catch (error) {
        throw new UsageError(
          `--write-config ${file} cannot be written (${systemCode(error)}); name another file`,
        )
      }
    }
    if (stdout.isTTY) {
      const next = writeConfig ? '' : ' With --write-config FILE it writes a configuration that uses it.'
      stderr.write(`A made-up Administration API listens at ${url}. Ctrl-C stops it.${next}\n`)
    } else stdout.write(`${JSON.stringify({ url, organizations })}\n`)
    if (!signal.aborted) await once(signal, 'abort')
    return 0
  } finally {
    await sandbox.close()
  }
}
