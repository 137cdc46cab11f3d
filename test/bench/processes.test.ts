import { describe, expect, it } from 'vitest'
import { tempFolder } from '../helpers/temp-folder.ts'
import { measure } from './processes.ts'

describe('a measured process', () => {
  it('is told by its time, its first lines and, where asked for, the peak of its memory', async () => {
    const peakIn = tempFolder()

    const small = await measure(['-e', 'console.log(1)'], { peakIn })
    const large = await measure(['-e', 'Buffer.alloc(100_000_000, 1)'], { peakIn })

    expect(small).toMatchObject({ stdout: '1\n', ms: expect.any(Number) })
    expect((large.peakKb ?? 0) - (small.peakKb ?? 0)).toBeGreaterThan(80_000)
  })

  it('has no peak, and nothing loaded before it, where nobody asks', async () => {
    const { peakKb, stdout } = await measure(['-e', 'console.log(process.execArgv.length)'])

    expect({ peakKb, stdout }).toEqual({ peakKb: null, stdout: '2\n' })
  })

  it('may write more than anybody keeps', async () => {
    const { stdout } = await measure(['-e', 'process.stdout.write("x".repeat(5_000_000))'])

    expect(stdout.length).toBeGreaterThan(1000)
    expect(stdout.length).toBeLessThan(1_000_000)
  })

  it('is stopped once it has said the word', async () => {
    const program = `
      process.on('SIGTERM', () => { console.log('stopped'); process.exit() })
      process.stderr.write('I am'); setTimeout(() => process.stderr.write(' up'), 50); setInterval(() => {}, 1000)`

    const { stdout } = await measure(['-e', program], { stopAfter: 'I am up' })

    expect(stdout).toBe('stopped\n')
  })

  it('that fails is no measurement', async () => {
    await expect(measure(['-e', 'console.error("no luck"); process.exit(3)'])).rejects.toThrow(
      /ended with 3:\nno luck/,
    )
  })
})
