import { createHook } from 'node:async_hooks'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createLogFlush } from '../../src/mirror/log-flush.ts'
import { jobOf } from '../helpers/jobs.ts'
import { tempFolder } from '../helpers/temp-folder.ts'
import { beginTestWalk, openTestMirror } from '../helpers/test-mirror.ts'

/** Counts what the log's flush asks of the file system while nobody waits: it opens the log, writes it out, closes it. */
function countFlushing(): () => number {
  let count = 0
  const hook = createHook({
    init: (_id, type) => {
      if (type === 'FSREQCALLBACK' && new Error().stack?.includes('log-flush')) count++
    },
  }).enable()
  onTestFinished(() => {
    hook.disable()
  })
  return () => count
}

/** The handles that this process has of a file. */
function handlesOf(file: string): string[] {
  return fs.readdirSync('/proc/self/fd').filter((handle) => {
    try {
      return fs.readlinkSync(`/proc/self/fd/${handle}`).startsWith(file)
    } catch {
      return false
    }
  })
}

/** A page of a hundred orders of 4 kB each. */
function pageOfOrders(page: number): string[] {
  return Array.from({ length: 100 }, (_, id) => `{"id":${page * 100 + id},"a":"${'x'.repeat(4000)}"}`)
}

/** Opening, writing out, closing: what one flush asks for. */
const ONE = 3

describe('the log of a mirror', () => {
  it.each([
    ['is not written to the disk while little is in it', 5, 0],
    ['is written to the disk once before its pages are moved', 16, ONE],
  ])('%s, and nothing holds it when the mirror is closed', async (_what, pages, asked) => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    const flushing = countFlushing()

    for (let page = 0; page < pages; page++) await saveItems(...pageOfOrders(page))

    await vi.waitFor(() => expect(flushing()).toBe(asked))
    test.close()
    await vi.waitFor(() => expect(handlesOf(test.file)).toEqual([]))
    expect(fs.existsSync(`${test.file}-wal`)).toBe(false)
  })

  it('is written to the disk each time before its pages are moved', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    const flushing = countFlushing()

    for (let page = 0; flushing() < 2 * ONE && page < 200; page++) {
      await saveItems(...pageOfOrders(page))
      await sleep(1)
    }

    expect(flushing()).toBe(2 * ONE)
  })
})

describe('a flush', () => {
  it('is begun once, and again after the pages were moved', async () => {
    const file = path.join(tempFolder(), 'a-log')
    fs.writeFileSync(file, 'pages')
    const flushing = countFlushing()
    const flush = createLogFlush(file)

    flush.begin()
    flush.reset()
    flush.begin()
    await vi.waitFor(() => expect(flushing()).toBe(ONE))
    await vi.waitFor(() => {
      flush.reset()
      flush.begin()
      expect(flushing()).toBeGreaterThan(ONE)
    })
    await vi.waitFor(() => expect(flushing()).toBe(2 * ONE))
    await vi.waitFor(() => expect(handlesOf(file)).toEqual([]))
    // By now it was told that the log is closed.
    await sleep(20)
    flush.begin()

    expect(flushing()).toBe(2 * ONE)
  })

  it('keeps it to itself when there is no log, and can be begun again', async () => {
    const file = path.join(tempFolder(), 'a-log')
    const flushing = countFlushing()
    const flush = createLogFlush(file)

    flush.begin()
    await vi.waitFor(() => {
      flush.reset()
      flush.begin()
      expect(flushing()).toBe(2)
    })
    fs.writeFileSync(file, 'pages')

    await vi.waitFor(() => {
      flush.reset()
      flush.begin()
      expect(flushing()).toBeGreaterThan(2 + ONE)
    })
    await vi.waitFor(() => expect(handlesOf(file)).toEqual([]))
  })
})
