import { describe, expect, it } from 'vitest'
import { idleSettings } from '../../src/cli/idle-settings.ts'
import { items, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization } from './workspace.ts'

describe('a setting without effect', () => {
  it.each<[string, Parameters<typeof idleSettings>[0], string[]]>([
    ['is none of those that have one', { publish: null, http: null }, []],
    ['is named', { publish: '/srv/mirror.db', http: null }, ['publish,']],
    ['is named by its section', { publish: null, http: { host: '::1', port: 1 } }, ['http,']],
  ])('%s', (_title, config, expected) => {
    const told = idleSettings(config)

    expect(told).toEqual(expected.map((part) => expect.stringContaining(part)))
  })

  it('is warned about at the start of a sync', async () => {
    const server = await serve((asked) => pageOf(items(2), asked))
    const collections = { establishments: false, orders: { history: '90d' } }
    const organizations = [organization('acme', 1)]
    const workspace = createWorkspace({ baseUrl: server.url, organizations, collections, http: { port: 1 } })

    const { code, logs } = await workspace.run(['sync'])

    expect(code).toBe(0)
    expect(logs.filter(({ level }) => level === 'warn').map(({ msg }) => msg)).toEqual([
      expect.stringContaining('http'),
    ])
  })
})
