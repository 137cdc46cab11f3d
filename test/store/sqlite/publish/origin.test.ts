import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { assertOwnCopy, type Numbers, originOf } from '../../../../src/store/sqlite/publish/numbers.ts'
import { inspectPlace, numbersFile } from '../../../../src/store/sqlite/publish/place.ts'
import { makeCopy } from '../../../../src/store/sqlite/publish/publish.ts'
import { tempFolder } from '../../../helpers/temp-folder.ts'
import { openTestMirror } from '../../../helpers/test-mirror.ts'

const HOUR_MS = 3_600_000

const ours = originOf('/our/mirror.db', { salt: 'ours', since: 0 })

/** A copy that a mirror has published now. */
function publishedBy(mirror: typeof ours): string {
  const { file } = openTestMirror()
  const target = path.join(tempFolder(), 'copy.db')
  makeCopy(
    {
      mirror: file,
      target,
      mode: 0o644,
      published: { version: '1', origin: mirror, contents: '', begunAt: 0 },
    },
    '12345-0123456789ab',
    Date.now,
  )
  return target
}

/** Whether a mirror may replace this copy. */
function mayReplace(target: string, mirror: typeof ours): boolean {
  try {
    assertOwnCopy(target, inspectPlace(target), mirror)
    return true
  } catch (error) {
    expect(String(error)).toMatch(
      /copy\.db is the copy of another mirror, made at 20\S+Z, so .* Give each configuration a "publish" of its own\. If .* delete .*copy\.db$/,
    )
    return false
  }
}

describe('a published file', () => {
  it.each<[what: string, mirror: typeof ours, isOwn: boolean]>([
    ['by the mirror that made it', ours, true],
    ['by that mirror, moved or restored elsewhere', { ...ours, place: 'elsewhere' }, true],
    ['by another mirror', originOf('/their/mirror.db', { salt: 'theirs', since: 0 }), false],
    [
      'by one made anew where that one stood, and filled since',
      { ...ours, id: 'new', since: Date.now() + HOUR_MS },
      true,
    ],
    ['by one made anew there that is empty', { ...ours, id: 'new', since: null }, true],
    [
      'by one that stood there before it was made',
      { ...ours, id: 'other', since: Date.now() - HOUR_MS },
      false,
    ],
  ])('is replaced or kept: %s', (_what, mirror, isOwn) => {
    expect(mayReplace(publishedBy(ours), mirror)).toBe(isOwn)
  })

  it.each<[what: string, change: (target: string) => void]>([
    ['once it has been deleted', (target) => fs.rmSync(target)],
    [
      'where its numbers name no mirror, as an earlier version wrote them',
      (target) => {
        const { mirror: _, ...former } = JSON.parse(fs.readFileSync(numbersFile(target), 'utf8')) as Numbers
        fs.writeFileSync(numbersFile(target), JSON.stringify(former))
      },
    ],
  ])('is replaced by any mirror %s', (_what, change) => {
    const target = publishedBy(ours)
    change(target)

    expect(mayReplace(target, originOf('/their/mirror.db', { salt: 'theirs', since: 0 }))).toBe(true)
  })
})
