import { once } from 'node:events'
import path from 'node:path'
import { readRegularFile } from '../../config/token-file.ts'
import { systemCode, UsageError } from '../../errors.ts'
import {
  type Sandbox,
  type SandboxOptions,
  sandboxConfiguration,
  startSandbox,
} from '../../sandbox/server.ts'
import { newLockName } from '../../store/sqlite/file/lock-file.ts'
import { type OutputFile, outputFile, writeOutput } from '../output/output-file.ts'
import type { Globals, Runtime } from '../runtime.ts'

interface Options extends Omit<SandboxOptions, 'live' | 'now'> {
  live?: boolean
  writeConfig?: string
}

/** `sandbox`: a made-up Administration API until SIGTERM, SIGINT or SIGHUP. */
export async function run(runtime: Runtime, _globals: Globals, options: Options): Promise<number> {
  const { stdout, stderr, signal, now, newToken, pid } = runtime
  if (options.speed !== 1 && !options.live)
    throw new UsageError('--speed: nothing changes in a sandbox that is not live; add --live')
  const file =
    options.writeConfig === undefined
      ? null
      : outputFile('--write-config', path.resolve(runtime.cwd, options.writeConfig))
  if (file) assertOurs(file)
  const server = await startOnPort({ ...options, live: options.live === true, now })
  try {
    const until = { lockName: newLockName(pid, newToken), mirror: null }
    if (file) await writeOutput(file, [sandboxConfiguration(server)], until)
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

/** Throws UsageError if the file exists and no sandbox wrote it: it may be the user's own configuration. */
function assertOurs({ shown, place, isRegular, before }: OutputFile): void {
  if (!isRegular) throw new UsageError(`${shown} is a pipe or a device; name a file`)
  if (before === null || before.size === 0) return
  const [ours = ''] = sandboxConfiguration({ url: '', organizations: [] }).split('\n')
  const [first] = readBeginning(shown, place, ours.length + 2).split(/\r?\n/)
  if (first === ours) return
  throw new UsageError(
    `${shown} is there already and was not written by the sandbox; name another file, or move it away`,
  )
}

function readBeginning(shown: string, place: string, bytes: number): string {
  try {
    return readRegularFile(place, bytes).toString()
  } catch (error) {
    throw new UsageError(`${shown} cannot be read: ${error instanceof Error ? error.message : ''}`)
  }
}

async function startOnPort(options: Parameters<typeof startSandbox>[0]): Promise<Sandbox> {
  try {
    return await startSandbox(options)
  } catch (error) {
    const code = systemCode(error)
    if (code === 'EADDRINUSE' || code === 'EACCES') {
      throw new UsageError(
        `--port ${options.port} cannot be used (${code}); choose another one, or 0 for any that is free`,
      )
    }
    throw error
  }
}
