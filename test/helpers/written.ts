import { setTimeout as sleep } from 'node:timers/promises'
import type { Workspace } from './workspace.ts'

/**
 * Waits until so many open walks have written all pages in front of this one. The server cannot tell: a page is asked for
 * before the one in front of it is written.
 */
export async function written(workspace: Workspace, next: number, walks = 1): Promise<void> {
  const count = `SELECT count(*) FROM sync_walks WHERE status = 'open' AND next_page = ${next}`
  while (Number(workspace.value(count)) < walks) await sleep(20)
}
