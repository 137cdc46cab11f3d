import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Asked, createDoor, items, pageOf, serve } from './list-server.ts'
import type { LogLine } from './processes.ts'
import { createWorkspace, organization } from './workspace.ts'
import { written } from './written.ts'

const ITEMS = items(6)
const isBusy = ({ event }: LogLine) => event === 'list_busy'
const isOrdersPage = (wanted: number) => (asked: Asked) =>
  asked.collection === 'orders' && asked.page === wanted

/** A server that keeps the second page of acme's orders behind a door, so that whoever asks for it stays at work. */
async function createScene() {
  const door = createDoor()
  const server = await serve(async (asked) => {
    if (isOrdersPage(2)(asked) && asked.organization.endsWith('1')) await door.opened
    return pageOf(ITEMS, asked)
  })
  const workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [organization('acme', 1), organization('globex', 2)],
  })
  /** Waits until somebody stands before the door, with the first page written. */
  async function stand(): Promise<void> {
    await server.arrival(isOrdersPage(2))
    await written(workspace, 2)
  }
  return { door, workspace, stand }
}

describe.concurrent('a job that another process is working on', () => {
  it('is reported as busy, leaves no run, and does not keep other jobs', async () => {
    const { door, workspace, stand } = await createScene()
    const owner = workspace.start(['sync', '--org', 'acme'])
    await stand()

    const other = await workspace.run(['sync'])
    door.open()
    const first = await owner.ended

    expect(other.code).toBe(1)
    expect(other.logs.filter(({ error_code: code }) => code === 'BUSY')).toMatchObject([
      { event: 'run_not_begun', organization: 'acme', collection: 'orders' },
    ])
    expect(first.code).toBe(0)
    expect(
      workspace.rows(
        'SELECT name, status FROM sync_runs JOIN organizations ON organizations.id = organization_id',
      ),
    ).toEqual(
      expect.arrayContaining([
        { name: 'acme', status: 'succeeded' },
        { name: 'globex', status: 'succeeded' },
      ]),
    )
    expect(workspace.value('SELECT count(*) FROM sync_runs')).toBe(2)
  })

  it('is told apart from trouble: who works on it, and how far that one is', async () => {
    const { door, workspace, stand } = await createScene()
    const daemon = workspace.start(['start'])
    await stand()

    const beside = await workspace.run(['sync', '--org', 'acme'])
    door.open()
    daemon.kill('SIGTERM')
    await daemon.ended

    expect(beside.code).toBe(1)
    expect(beside.logs.map(({ error_message: message }) => message)).toEqual([
      `acme orders: the scheduler of process ${daemon.pid} is working on it (page 2, 33 %); nothing is wrong, and --wait waits for its end`,
    ])
  })

  it('is waited for by a start for whose schedule it is due, which says for whom', async () => {
    const { door, workspace, stand } = await createScene()
    const owner = workspace.start(['backfill', '--org', 'acme'])
    await stand()

    const daemon = workspace.start(['start'])
    const waits = await daemon.log(isBusy)
    door.open()
    await owner.ended
    daemon.kill('SIGTERM')
    const ended = await daemon.ended

    expect(waits.msg).toBe(
      `process ${owner.pid} is working on it (a backfill, page 2, 33 %); waiting for its end`,
    )
    expect(ended.code).toBe(0)
  })

  it('is waited for with --wait, and then read anew', async () => {
    const { door, workspace, stand } = await createScene()
    const owner = workspace.start(['sync', '--org', 'acme'])
    await stand()

    const waiting = workspace.start(['sync', '--org', 'acme', '--wait'])
    await waiting.log(isBusy)
    door.open()
    const codes = [(await owner.ended).code, (await waiting.ended).code]

    expect(codes).toEqual([0, 0])
    expect(workspace.rows('SELECT status, pages FROM sync_runs ORDER BY id')).toEqual([
      { status: 'succeeded', pages: 4 },
      { status: 'succeeded', pages: 4 },
    ])
  })

  it('stops waiting when it is told to stop', async () => {
    const { door, workspace, stand } = await createScene()
    const owner = workspace.start(['sync', '--org', 'acme'])
    await stand()
    const waiting = workspace.start(['sync', '--org', 'acme', '--wait'])
    await waiting.log(isBusy)

    waiting.kill('SIGTERM')
    const ended = await waiting.ended
    door.open()
    await owner.ended

    expect(ended.code).toBe(143)
    expect(ended.logs.at(-1)).toMatchObject({ event: 'run_not_begun', error_code: 'INTERRUPTED' })
    expect(workspace.value('SELECT count(*) FROM sync_runs')).toBe(1)
  })

  it('is taken over at once from a process that was killed, whose run is closed as interrupted', async () => {
    const { door, workspace, stand } = await createScene()
    const owner = workspace.start(['sync', '--org', 'acme'])
    await stand()

    owner.killAll('SIGKILL')
    await owner.ended
    door.open()
    const next = await workspace.run(['sync', '--org', 'acme'])

    expect(next.code).toBe(0)
    expect(workspace.rows('SELECT status, pages, requests FROM sync_runs ORDER BY id')).toEqual([
      // The second page was asked for before the first one was written.
      { status: 'interrupted', pages: 1, requests: 2 },
      { status: 'succeeded', pages: 4, requests: 4 },
    ])
  })

  it('stays with a process that merely stands still', async () => {
    const { door, workspace, stand } = await createScene()
    const owner = workspace.start(['sync', '--org', 'acme'])
    await stand()
    owner.killAll('SIGSTOP')

    const other = await workspace.run(['sync', '--org', 'acme'])
    owner.killAll('SIGCONT')
    door.open()
    const first = await owner.ended

    expect(other.logs).toContainEqual(expect.objectContaining({ error_code: 'BUSY' }))
    expect(first.code).toBe(0)
  })

  it('is not kept by what a dead process left, though another has its number now', async () => {
    const { door, workspace, stand } = await createScene()
    const owner = workspace.start(['sync', '--org', 'acme'])
    await stand()
    owner.killAll('SIGKILL')
    await owner.ended
    const owners = `${workspace.mirror}-owners`
    const [left = ''] = fs.readdirSync(owners)
    // As if the operating system had given the dead one's number to this process, which lives.
    const reborn = `${process.pid}-${left.split('-')[1]}`
    fs.renameSync(path.join(owners, left), path.join(owners, reborn))
    workspace.change(`UPDATE sync_jobs SET owner = '${reborn}' WHERE owner = '${left}'`)

    door.open()
    const next = await workspace.run(['sync', '--org', 'acme'])

    expect(next.code).toBe(0)
    expect(workspace.value('SELECT count(*) FROM sync_jobs WHERE owner IS NOT NULL')).toBe(0)
  })

  it('keeps no other process from another job of the same mirror', async () => {
    const arrived = createDoor()
    const server = await serve(async (asked) => {
      // Each is answered only when the other is at work, too.
      const others = server.asked.filter(({ organization: id }) => id !== asked.organization)
      if (others.length > 0) arrived.open()
      await arrived.opened
      return pageOf(ITEMS, asked)
    })
    const workspace = createWorkspace({
      baseUrl: server.url,
      organizations: [organization('acme', 1), organization('globex', 2)],
    })

    const ended = await Promise.all(['acme', 'globex'].map((name) => workspace.run(['sync', '--org', name])))

    expect(ended.map(({ code }) => code)).toEqual([0, 0])
    expect(workspace.rows('SELECT status, pages FROM sync_runs')).toEqual([
      { status: 'succeeded', pages: 4 },
      { status: 'succeeded', pages: 4 },
    ])
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(ITEMS.length * 2)
  })

  it('leaves no lock file behind', async () => {
    const { door, workspace } = await createScene()
    door.open()

    await workspace.run(['sync'])

    expect(fs.readdirSync(`${workspace.mirror}-owners`)).toEqual([])
  })
})
