import fs from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { leasesFolder } from '../../../../src/store/sqlite/file/lock-file.ts'
import { numbersFile, sweepUnfinished } from '../../../../src/store/sqlite/publish/place.ts'
import { makeCopy } from '../../../../src/store/sqlite/publish/publish.ts'
import { IS_ROOT } from '../../../helpers/system.ts'
import { tempFolder } from '../../../helpers/temp-folder.ts'
import { openTestMirror } from '../../../helpers/test-mirror.ts'

const LOCK = '12345-0123456789ab'

it('leaves the copy that another mirror has published while ours was made', () => {
  const { file: mirror } = openTestMirror()
  const [folder, elsewhere] = [tempFolder(), tempFolder()]
  const publish = (at: string, id: string, now = Date.now) =>
    makeCopy(
      {
        mirror,
        target: path.join(at, 'copy.db'),
        mode: 0o644,
        published: { version: '1', origin: { id, place: id, since: null }, contents: '', begunAt: 0 },
      },
      LOCK,
      now,
    )
  publish(elsewhere, 'theirs')
  const numbers = () =>
    JSON.parse(fs.readFileSync(path.join(folder, path.basename(numbersFile('copy.db'))), 'utf8')) as object
  /** The first look at the place is over then, and the second is not. */
  const whileMade = () => {
    fs.cpSync(elsewhere, folder, { recursive: true })
    return Date.now()
  }

  expect(() => publish(folder, 'ours', whileMade)).toThrow(/copy of another mirror/)

  expect(numbers()).toMatchObject({ mirror: { id: 'theirs' } })
})

it.skipIf(!IS_ROOT)(
  'sweeps what a killed process of ours left, and nothing of another user (needs root)',
  () => {
    const { file: mirror } = openTestMirror()
    const folder = tempFolder()
    const left = (lock: string, uid: number) => {
      const at = path.join(folder, `.copy.db.${lock}.unfinished`)
      fs.writeFileSync(at, 'half')
      fs.chownSync(at, uid, uid)
      fs.utimesSync(at, 0, 0)
      return at
    }
    const files = [left('1-0123456789ab', 0), left('2-0123456789ab', 65_534), left('3-0123456789ab', 65_534)]
    // The locks of both dead processes are free.
    for (const lock of ['1-0123456789ab', '3-0123456789ab'])
      fs.writeFileSync(path.join(leasesFolder(mirror), lock), '')
    const own = path.join(folder, 'own')
    fs.writeFileSync(own, '')

    sweepUnfinished({ folder: leasesFolder(mirror) }, path.join(folder, 'copy.db'), fs.lstatSync(own))

    expect(files.map((file) => fs.existsSync(file))).toEqual([false, true, true])
  },
)
