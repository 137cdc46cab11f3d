import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { outputFile, writeOutput } from '../../../src/cli/output/output-file.ts'
import { UsageError } from '../../../src/errors.ts'
import { IS_ROOT, runs } from '../../helpers/system.ts'
import { tempFolder } from '../../helpers/temp-folder.ts'

const LOCK = '4711-0123456789ab'
const UNTIL = { lockName: LOCK, mirror: null }
const UNFINISHED = `.orders.csv.${LOCK}.unfinished`
const SETPRIV = 'setpriv'
const CAN_BE_OTHERS = IS_ROOT && runs(SETPRIV, '--version')

function* failing(): Iterable<string> {
  yield 'half '
  throw new RangeError('no more rows')
}

describe('an output file', () => {
  it('is not written through a file or a link that exists', async () => {
    const folder = tempFolder()
    const [target = '', victim = '', link = ''] = ['orders.csv', 'victim', UNFINISHED].map((name) =>
      path.join(folder, name),
    )
    fs.writeFileSync(victim, 'precious')
    fs.symlinkSync(victim, link)

    await expect(writeOutput(outputFile('--output', target), ['rows'], UNTIL)).rejects.toThrow(UsageError)

    expect(fs.readFileSync(victim, 'utf8')).toBe('precious')
    expect(fs.readdirSync(folder)).toHaveLength(2)
  })

  it('stays as it was if writing fails', async () => {
    const folder = tempFolder()
    const target = path.join(folder, 'orders.csv')
    fs.writeFileSync(target, 'yesterday')

    await expect(writeOutput(outputFile('--output', target), failing(), UNTIL)).rejects.toThrow(RangeError)

    expect(fs.readFileSync(target, 'utf8')).toBe('yesterday')
    expect(fs.readdirSync(folder)).toEqual(['orders.csv'])
  })

  it.skipIf(!IS_ROOT)('keeps its owner (needs root)', async () => {
    const target = path.join(tempFolder(), 'orders.csv')
    fs.writeFileSync(target, 'yesterday', { mode: 0o600 })
    for (const one of [target, path.dirname(target)]) fs.chownSync(one, 10_001, 10_001)

    await writeOutput(outputFile('--output', target), ['rows'], UNTIL)

    const { uid, gid, mode } = fs.statSync(target)
    expect([uid, gid, mode & 0o777]).toEqual([10_001, 10_001, 0o600])
  })

  it.skipIf(!CAN_BE_OTHERS)(
    'keeps its group for a user who is in it, and gives another group no rights (needs root)',
    () => {
      const folder = tempFolder()
      fs.chmodSync(folder, 0o777)
      const modes = ['10002', '10003'].map((group) => {
        const target = path.join(folder, `${group}.csv`)
        fs.writeFileSync(target, 'yesterday')
        fs.chownSync(target, 10_001, 10_002)
        fs.chmodSync(target, 0o640)
        const module = path.resolve(import.meta.dirname, '../../../src/cli/output/output-file.ts')
        const script = `const { outputFile, writeOutput } = await import('${module}'); await writeOutput(outputFile('--output', '${target}'), ['rows'], { lockName: '${LOCK}', mirror: null })`
        const user = ['--reuid=10001', '--regid=10001', `--groups=${group}`]
        execFileSync(SETPRIV, [...user, process.execPath, '--input-type=module', '-e', script])
        const { uid, gid, mode } = fs.statSync(target)
        return [uid, gid, (mode & 0o777).toString(8)]
      })

      expect(modes).toEqual([
        [10_001, 10_002, '640'],
        [10_001, 10_001, '600'],
      ])
    },
  )

  it.skipIf(!IS_ROOT)('is not what another user has put into a folder for all (needs root)', async () => {
    const folder = tempFolder()
    fs.chmodSync(folder, 0o1777)
    const target = path.join(folder, 'orders.csv')
    fs.writeFileSync(target, 'trap')
    fs.chownSync(target, 65_534, 65_534)
    fs.chmodSync(target, 0o666)

    await expect(writeOutput(outputFile('--output', target), ['rows'], UNTIL)).rejects.toThrow(
      'belongs to another user',
    )

    expect(fs.readFileSync(target, 'utf8')).toBe('trap')
    expect(fs.readdirSync(folder)).toEqual(['orders.csv'])
  })

  it.each([null, 0o606])(
    "is its owner's alone until it is whole, where the one before had the mode %j",
    async (before) => {
      const folder = tempFolder()
      const target = path.join(folder, 'orders.csv')
      if (before !== null) {
        fs.writeFileSync(target, 'yesterday')
        fs.chmodSync(target, before)
      }
      const modes: number[] = []
      function* pieces() {
        modes.push(fs.statSync(path.join(folder, UNFINISHED)).mode & 0o777)
        yield 'rows'
      }

      await writeOutput(outputFile('--output', target), pieces(), UNTIL)

      expect(modes).toEqual([0o600])
      expect(fs.statSync(target).mode & 0o777).toBe(before ?? 0o666 & ~process.umask())
    },
  )

  it('is made where a killed process left an unfinished one, which goes once it is an hour old', async () => {
    const folder = tempFolder()
    const left = ['.orders.csv.1-0123456789ab.unfinished', '.orders.csv.2-0123456789ab.unfinished']
    const others = ['.other.csv.1-0123456789ab.unfinished', 'orders.csv.unfinished']
    for (const name of [...left, ...others]) fs.writeFileSync(path.join(folder, name), 'half')
    for (const name of [left[0] ?? '', ...others]) fs.utimesSync(path.join(folder, name), 0, 0)

    await writeOutput(outputFile('--output', path.join(folder, 'orders.csv')), ['rows'], UNTIL)

    expect(fs.readdirSync(folder).toSorted()).toEqual([left[1] ?? '', ...others, 'orders.csv'].toSorted())
  })

  it('cannot be a folder, or what cannot be reached', () => {
    const folder = tempFolder()
    fs.symlinkSync('circle', path.join(folder, 'circle'))

    expect(() => outputFile('--output', folder)).toThrow(`--output ${folder} is a folder; name a file in it`)
    expect(() => outputFile('--output', path.join(folder, 'circle'))).toThrow(UsageError)
  })
})
