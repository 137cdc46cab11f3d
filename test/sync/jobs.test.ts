import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { MirrorError, RetryableError } from '../../src/errors.ts'
import { type JobOptions, runConcurrently, runJob } from '../../src/sync/job.ts'
import type { PageSource } from '../../src/sync/types.ts'
import { ACME, GLOBEX, jobOf } from '../helpers/jobs.ts'
import { jobOptions, runs } from '../helpers/run-once.ts'
import { type Script, scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror, type TestMirror } from '../helpers/test-mirror.ts'

function jobs(test: TestMirror, acme: Script, globex: Script) {
  return [
    jobOptions(test, scriptedList(acme).source, { job: jobOf({}, ACME) }),
    jobOptions(test, scriptedList(globex).source, { job: jobOf({}, GLOBEX) }),
  ]
}

function runJobs(all: readonly Omit<JobOptions, 'signal'>[], signal: AbortSignal) {
  return runConcurrently(
    all.map((job) => (stop) => runJob({ ...job, signal: stop })),
    signal,
  )
}

const GOING = new AbortController().signal

describe('concurrent jobs', () => {
  it.each([
    ['a fault of the server', new RetryableError('SERVER_ERROR', 'failed')],
    ['a mistake of ours', new TypeError('x is not a function')],
  ])('do not stop each other: %s', async (_what, error) => {
    const test = openTestMirror()
    const failing: Script = {
      ids: upTo(10),
      before: () => {
        throw error
      },
    }

    const [acme, globex] = await runJobs(jobs(test, failing, { ids: upTo(10) }), GOING)

    expect(acme?.error).not.toBeNull()
    expect(globex).toMatchObject({ error: null, coverage: 'steady', run: { rowsAdded: 10 } })
  })

  it('all stop when the mirror fails, and all say so', async () => {
    const test = openTestMirror()
    const breaking: Script = {
      ids: upTo(10),
      before: (answer) => {
        if (answer === 2) test.connection.exec('DROP TABLE sync_pages')
      },
    }
    const endless = scriptedList({ ids: upTo(10) })
    const waiting: PageSource = {
      ...endless.source,
      fetchPage: (_page, _observer, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('aborted')))
        }),
    }

    const [acme] = jobs(test, breaking, { ids: [] })
    const globex = jobOptions(test, waiting, { job: jobOf({}, GLOBEX) })
    const results = await runJobs([...(acme ? [acme] : []), globex], GOING)

    expect(results.map(({ error }) => error)).toEqual([expect.any(MirrorError), expect.any(MirrorError)])
    expect(runs(test).map(({ status, error_code }) => [status, error_code])).toEqual([
      ['failed', 'DATABASE'],
      ['failed', 'DATABASE'],
    ])
  })

  it('are all interrupted by a signal', async () => {
    const test = openTestMirror()
    const stop = new AbortController()
    const stopping: Script = { ids: upTo(10), before: (answer) => answer === 2 && stop.abort('SIGTERM') }

    const results = await runJobs(jobs(test, stopping, stopping), stop.signal)

    expect(results.map(({ error }) => error?.code)).toEqual(['INTERRUPTED', 'INTERRUPTED'])
    expect(runs(test).map(({ status }) => status)).toEqual(['interrupted', 'interrupted'])
  })

  it('leave no listener on the signal of their caller', async () => {
    const test = openTestMirror()
    const { signal } = new AbortController()

    await runJobs(jobs(test, { ids: upTo(2) }, { ids: upTo(2) }), signal)

    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})
