import { Writable } from 'node:stream'
import type { Runtime } from '../runtime.ts'

/** The runtime of `--quiet`: what is no error goes nowhere, and nothing is drawn. */
export function silenced(runtime: Runtime): Runtime {
  const stderr = new Writable({ write: (_chunk, _encoding, done) => done() })
  return { ...runtime, stderr, errors: runtime.stderr }
}
