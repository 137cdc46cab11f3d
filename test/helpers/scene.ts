import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'vitest'
import { type Asked, items, pageOf, type Reply, serve } from './list-server.ts'
import { createWorkspace, organization, type Settings, type Workspace } from './workspace.ts'

export const ACME = organization('acme', 1)
export const GLOBEX = organization('globex', 2)

/** The schedule of a `start` that runs only what is due at its begin: its day is a week away or more, and soon found. */
export const NEVER = `0 0 ${((new Date().getUTCDate() + 13) % 28) + 1} * *`
/** That of one that never rests. */
export const EVERY_SECOND = '* * * * * *'

interface Api {
  /** What every list holds. */
  list: readonly unknown[]
  /** An answer in place of the page of that list. */
  instead: (asked: Asked) => Reply | null | Promise<Reply | null>
  perPage: number
}

export interface SceneOptions extends Partial<Api> {
  settings?: Partial<Settings>
  /** The name of the mirror's file. */
  database?: string
}

export type Scene = Awaited<ReturnType<typeof createScene>>

/** An API of lists of four orders, two a page, and a folder with a configuration that names it, for acme alone; both as the test goes on to say. */
export async function createScene(options: SceneOptions = {}) {
  const { list = items(4), instead = () => null, perPage = 2, settings = {}, database } = options
  const api: Api = { list, instead, perPage }
  const server = await serve(async (asked) => {
    const reply = await api.instead(asked)
    return reply ?? pageOf(api.list, asked, api.perPage)
  })
  const all = (more: Partial<Settings>) => ({
    baseUrl: server.url,
    organizations: [ACME],
    ...settings,
    ...more,
  })
  const workspace = createWorkspace(all({}), database)
  /** These settings from now on, on top of those of the scene. */
  const configure = (more: Partial<Settings>) => workspace.configure(all(more))
  return { server, workspace, api, configure }
}

/**
 * Returns an `it` with scenes, as `it.override({ options })` says for a suite. Each file has its own: files share their modules, and what
 * one of them overrides would be there for the next.
 */
export function sceneTests() {
  return (
    test
      .extend('options', {} as SceneOptions)
      .extend('scene', async ({ options }) => createScene(options))
      /** After a first sync. */
      .extend('synced', async ({ scene }) => {
        await scene.workspace.run(['sync'])
        scene.server.asked.length = 0
        return scene
      })
  )
}

interface StandingOptions extends SceneOptions {
  page?: number
  start?: 'start' | 'startHere'
  /** A program that starts it. */
  through?: readonly string[]
}

/**
 * A command that has written all pages of acme in front of this one, and waits for it until the door is opened: in this process, or in one
 * of its own where `start` says so.
 */
export async function createStanding(
  args: readonly string[],
  { page = 2, start = 'startHere', through, ...options }: StandingOptions = {},
) {
  const door = Promise.withResolvers<void>()
  const isThere = (asked: Asked) => asked.page === page && asked.organization === ACME.id
  const scene = await createScene({ list: items(6), ...options })
  scene.api.instead = async (asked) => {
    if (isThere(asked)) await door.promise
    return (await options.instead?.(asked)) ?? null
  }
  const running = scene.workspace[start](args, through ? { through } : {})
  await scene.server.arrival(isThere)
  await written(scene.workspace, page)
  return { ...scene, running, open: door.resolve }
}

/**
 * Waits until an open walk has written all pages in front of this one. The server cannot tell: a page is asked for
 * before the one in front of it is written.
 */
async function written(workspace: Workspace, next: number): Promise<void> {
  const count = `SELECT count(*) FROM sync_walks WHERE status = 'open' AND next_page = ${next}`
  while (workspace.value(count) === 0) await sleep(20)
}
