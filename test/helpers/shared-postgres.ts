import type { TestProject } from 'vitest/node'
import { startPostgres } from './postgres-server.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    postgres: { url: string; missing: string | null }
  }
}

/** Starts the one server of all files of tests that need none of their own, for as long as the run takes. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { url, missing, stop } = await startPostgres()
  project.provide('postgres', { url, missing })
  return stop
}
