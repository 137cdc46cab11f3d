import { describe, expect, it } from 'vitest'
import { logRefresh, logRun } from '../../../src/cli/output/run-lines.ts'
import { JobError } from '../../../src/errors.ts'
import { runJob } from '../../../src/sync/job.ts'
import { jobOptions } from '../../helpers/run-once.ts'
import { scriptedList, upTo } from '../../helpers/scripted-list.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'

/** The level of the line for a job that did not begin. */
async function levelOf(
  trigger: 'refresh' | 'schedule' | 'manual',
  code: 'BUSY' | 'UNAUTHORIZED' | 'DATABASE',
  isBegun = false,
) {
  const options = jobOptions(openTestMirror(), scriptedList({ ids: upTo(2) }).source)
  const ended = await runJob(options)
  const told: string[] = []
  const listen = (level: string) => () => told.push(level)
  const log = { debug: listen('debug'), info: listen('info'), warn: listen('warn'), error: listen('error') }
  const result = {
    ...ended,
    trigger,
    walk: isBegun ? ended.walk : null,
    run: null,
    error: new JobError(code, 'why'),
  }
  logRun(log as unknown as Parameters<typeof logRun>[0], result, 0, false)
  return told
}

describe('the line of a job that did not begin', () => {
  it.each([
    ['refresh', 'BUSY', 'debug'],
    ['refresh', 'UNAUTHORIZED', 'debug'],
    ['refresh', 'DATABASE', 'error'],
    ['schedule', 'BUSY', 'info'],
    ['schedule', 'DATABASE', 'error'],
    ['manual', 'BUSY', 'warn'],
  ] as const)('of a %s that is %s is %s', async (trigger, code, level) => {
    expect(await levelOf(trigger, code)).toEqual([level])
  })
})

describe('the line of a run that another worker has taken over', () => {
  it.each(['schedule', 'manual'] as const)('of a %s is info: nothing is wrong', async (trigger) => {
    expect(await levelOf(trigger, 'BUSY', true)).toEqual(['info'])
    expect(await levelOf(trigger, 'DATABASE', true)).toEqual(['error'])
  })
})

it('a refresh that another worker has taken over is told of at info', () => {
  const told: string[] = []
  const log = {
    info: () => told.push('info'),
    error: () => told.push('error'),
    warn: () => told.push('warn'),
  }
  const result = {
    runId: 1,
    tookMs: 0,
    run: { pages: 1, rowsAdded: 0, rowsChanged: 0, requests: 1 },
    saved: { freshAsOf: 0, newest: null, state: null },
    isAsked: false,
    error: new JobError('BUSY', 'another worker has it'),
  }
  const { job } = jobOptions(openTestMirror(), scriptedList({ ids: upTo(2) }).source)
  logRefresh(
    log as unknown as Parameters<typeof logRefresh>[0],
    job,
    result as unknown as Parameters<typeof logRefresh>[2],
  )
  expect(told).toEqual(['info'])
})
