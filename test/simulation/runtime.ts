import { Readable, Writable } from 'node:stream'
import type { Runtime } from '../../src/cli/runtime.ts'
import { afterRealTime } from '../helpers/real-time.ts'
import type { VirtualClock } from './clock.ts'
import type { SimulatedProcess } from './process.ts'
import type { Random } from './random.ts'

/** By their names, so that one knows of another that it has ended. */
const processes = new Map<string, SimulatedProcess>()

const NOWHERE = new Writable({ write: (_chunk, _encoding, done) => done() })

/** What the program takes from its process, of which nothing is real. */
export function createRuntime(
  process: SimulatedProcess,
  pid: number,
  { clock, now }: { clock: VirtualClock; now: () => number },
  random: Random,
): Runtime {
  const { signal } = process.stop
  const mark = Array.from({ length: 12 }, () => random.whole(0, 15).toString(16)).join('')
  const processName = `machine-${pid}-${mark}`
  processes.set(processName, process)
  return {
    env: {},
    cwd: '/',
    pid,
    processName,
    isAlive: (name) => processes.get(name)?.isAlive() ?? null,
    stdin: () => Readable.from([]),
    stdout: NOWHERE,
    stderr: NOWHERE,
    signal,
    now,
    elapsed: clock.now,
    sleep: (ms, stop) => sleep(process, clock, ms, stop),
    yieldToEventLoop: async () => {},
    random: random.next,
    every: (ms, task) => every(process, clock, ms, task),
    // How long a server is silent is real time.
    after: afterRealTime,
    randomHex: () => Array.from({ length: 32 }, () => random.whole(0, 15).toString(16)).join(''),
    dieOnSignal: () => {},
  }
}

/** Until it is ended, or the process is. */
function every(process: SimulatedProcess, clock: VirtualClock, ms: number, task: () => unknown): () => void {
  let isOver = false
  const wait = () => {
    clock.after(ms, () => {
      process.whenAwake(() => {
        if (isOver || !process.isAlive()) return
        process.run(task)
        wait()
      })
    })
  }
  wait()
  return () => {
    isOver = true
  }
}

/** As Node's own: at least a millisecond, and cut short with an AbortError. */
function sleep(
  process: SimulatedProcess,
  clock: VirtualClock,
  ms: number,
  signal?: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    process.step('sleep')
    const stop = () => {
      wake()
      if (process.isAlive()) reject(new DOMException('The operation was aborted', 'AbortError'))
    }
    const wake = clock.after(Math.max(1, Math.trunc(ms)), () => {
      process.whenAwake(() => {
        signal?.removeEventListener('abort', stop)
        if (process.isAlive()) resolve()
      })
    })
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}
