import { describe, expect, it } from 'vitest'
import { tempFolder } from '../helpers/temp-folder.ts'
import { measurePaths } from './path.ts'

// The bound of what a reader must open to follow one page. Who needs one more file here joins two others.

describe('the path of one page', () => {
  it('goes through few files, and through fewer if nothing has changed', { timeout: 120_000 }, async () => {
    const { first, unchanged } = await measurePaths(tempFolder())

    expect(first).toEqual(expect.arrayContaining(['sync/walk.ts', 'api/client.ts', 'store/core/rows.ts']))
    expect(unchanged).not.toContain('store/columns/row.ts')
    expect(first.length).toBeLessThanOrEqual(49)
    expect(unchanged.length).toBeLessThanOrEqual(53)
  })
})
