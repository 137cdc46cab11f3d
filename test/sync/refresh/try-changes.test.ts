import { describe, expect, it } from 'vitest'
import { JobError, TokenRefusedError } from '../../../src/errors.ts'
import { type Ask, tryChanges } from '../../../src/sync/refresh/try-changes.ts'
import { START } from '../../helpers/clock.ts'
import { jobOf } from '../../helpers/jobs.ts'
import { pageOf } from '../../helpers/pages.ts'

const RULES = { parameter: 'updated_after', field: 'updated_at' }

const JOB = jobOf({ changedSince: RULES })
const FIRST = pageOf(['{ "id": 1, "updated_at": "2026-11-20T07:00:00Z" }'])

describe('trying whether an API can be asked for changes', () => {
  it.each<{
    name: string
    page?: typeof FIRST
    given?: readonly string[] | Error
    isHeeded: boolean
    text: string
  }>([
    {
      name: 'what changed',
      given: [FIRST.items[0]?.text ?? ''],
      isHeeded: true,
      text: '1 row changed after 2026-11-20T06:58:00Z, says the API: it heeds updated_after',
    },
    { name: 'nothing', given: [], isHeeded: false, text: 'gave nothing, though a row did' },
    {
      name: 'a row of the past',
      given: ['{ "id": 1, "updated_at": "2026-11-20T06:00:00Z" }'],
      isHeeded: false,
      text: 'it ignores the parameter',
    },
    {
      name: 'a refusal',
      given: new JobError('UNEXPECTED_STATUS', 'no (422)'),
      isHeeded: false,
      text: 'refuses requests with updated_after: no (422)',
    },
    {
      name: 'no time',
      page: pageOf(['{ "id": 1 }']),
      isHeeded: false,
      text: 'no row of the first page has a time in updated_at',
    },
    { name: 'no row', page: pageOf([]), isHeeded: true, text: 'not tried' },
  ])('tells of $name', async ({ page = FIRST, given, isHeeded, text }) => {
    const asked: unknown[] = []
    const ask: Ask = async (number, more) => {
      asked.push({ number, ...more })
      if (given instanceof Error) throw given
      return pageOf(given ?? [])
    }

    const tried = await tryChanges(JOB, page, ask, START)

    expect(tried).toEqual({ isHeeded, text: expect.stringContaining(text) })
    expect(asked).toEqual(given ? [{ number: 1, updated_after: '2026-11-20T06:58:00Z' }] : [])
  })

  it('says that nothing will show what is hidden where the field is not compared', async () => {
    const job = jobOf({
      changedSince: RULES,
      ignore: ['updated_at'],
    })

    expect(await tryChanges(job, FIRST, async () => FIRST, START)).toMatchObject({
      isHeeded: true,
      text: expect.stringContaining('updated_at is in ignore'),
    })
  })

  it('leaves a refused token to whoever asked', async () => {
    const tried = tryChanges(JOB, FIRST, () => Promise.reject(new TokenRefusedError('refused')), START)

    await expect(tried).rejects.toThrow('refused')
  })

  it('sends nothing where that is not configured', async () => {
    expect(await tryChanges(jobOf(), FIRST, () => Promise.reject(new Error('asked')), START)).toBeNull()
  })
})
