import { describe, expect, it } from 'vitest'
import { createCandidates } from '../../src/sync/differences.ts'
import { identifyItems, type StoredItem } from '../../src/sync/items.ts'
import { jobOf } from '../helpers/jobs.ts'
import { pageOf } from '../helpers/pages.ts'

const FORWARD = { page: 1, isForward: true, isSeen: false }
const OTHER: StoredItem = { state: 'different', text: '{"a":"old"}', times: { firstAt: 1, changedAt: 1 } }

describe('candidates of a comparison', () => {
  it('are kept up to a number of each kind, so that many of one kind hide none of another', () => {
    const candidates = createCandidates(new Set(), 2)
    const items = identifyItems(jobOf(), pageOf([1, 2, 3, 4].map((id) => `{"id":${id}}`)))
    const stored: StoredItem[] = [OTHER, OTHER, OTHER, { state: 'absent' }]

    for (const [index, item] of items.entries()) candidates.read(item, stored[index] ?? OTHER, FORWARD)
    for (const [index, item] of items.entries()) candidates.readAgain(item, stored[index] ?? OTHER, 1)
    candidates.addExtra('9')
    candidates.confirmExtra()

    expect(candidates.differences()).toMatchObject({
      counts: { missing: 1, extra: 1, different: 2 },
      isCut: true,
    })
  })

  it('are none of those that a second look finds equal', () => {
    const candidates = createCandidates(new Set())
    const [item] = identifyItems(jobOf(), pageOf(['{"id":1}']))
    if (!item) throw new Error('no item')

    candidates.read(item, OTHER, FORWARD)
    candidates.readAgain(item, { state: 'same', times: null }, 1)

    expect(candidates.differences()).toMatchObject({ counts: { different: 0 }, moved: 1, isCut: false })
  })
})
