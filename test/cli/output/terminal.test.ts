import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createTerminal } from '../../../src/cli/output/terminal.ts'

function createScreen(isTTY: boolean, columns?: number) {
  const stream = Object.assign(
    new PassThrough({ encoding: 'utf8' }),
    columns === undefined ? { isTTY } : { isTTY, columns },
  )
  return { stream, written: () => String(stream.read() ?? '') }
}

// Line by line: tmux keeps in its history what is erased at once from the top of the screen.
const ERASED = '\u001b[1A\u001b[2K'

describe('a terminal', () => {
  it('draws lines over the last ones', () => {
    const { stream, written } = createScreen(true, 80)
    const terminal = createTerminal(stream, 'xterm')

    terminal.draw(['one', 'two'])
    terminal.draw(['three'])

    expect(written()).toBe(`one\ntwo\n${ERASED.repeat(2)}\u001b[0Jthree\n`)
  })

  it('keeps log lines above the drawn ones', () => {
    const { stream, written } = createScreen(true, 80)
    const terminal = createTerminal(stream, 'xterm')

    terminal.draw(['drawn'])
    terminal.log.write('a log line\n')

    expect(written()).toBe(`drawn\n${ERASED}\u001b[0Ja log line\ndrawn\n`)
  })

  it.each([
    [10, '01234567…'],
    [80, '0123456789abcdef'],
    // Unknown.
    [0, '0123456789abcdef'],
    [undefined, '0123456789abcdef'],
  ])('of %s columns cuts a line before it wraps', (columns, text) => {
    const { stream, written } = createScreen(true, columns)

    createTerminal(stream, 'xterm').draw(['0123456789abcdef'])

    expect(written()).toBe(`${text}\n`)
  })

  it('erases what a narrower window has wrapped', () => {
    const { stream, written } = createScreen(true, 80)
    const terminal = createTerminal(stream, 'xterm')
    terminal.draw(['x'.repeat(70), 'short'])
    written()

    Object.assign(stream, { columns: 40 })
    terminal.draw(['next'])

    expect(written()).toBe(`${ERASED.repeat(3)}\u001b[0Jnext\n`)
  })

  it('writes nothing again that stands there', () => {
    const { stream, written } = createScreen(true, 80)
    const terminal = createTerminal(stream, 'xterm')

    terminal.draw(['same'])
    terminal.draw(['same'])

    expect(written()).toBe('same\n')
  })

  it('that knows no escapes gets none', () => {
    const { stream, written } = createScreen(true, 80)
    const terminal = createTerminal(stream, 'dumb')

    terminal.draw(['drawn'])
    terminal.log.write('a log line\n')

    expect(written()).toBe('a log line\n')
  })

  it('draws nothing if it is none', () => {
    const { stream, written } = createScreen(false)

    createTerminal(stream, 'xterm').draw(['drawn'])

    expect(written()).toBe('')
  })
})
