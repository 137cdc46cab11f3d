import { onTestFinished } from 'vitest'
import { runRule } from '../../../src/store/sqlite/driver.ts'
import { openForWriting } from '../../../src/store/sqlite/open.ts'
import { runnerOn } from '../../../src/store/sqlite/runner.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'
import { describeColumns } from '../contract-columns.ts'
import { describeLeases } from '../contract-leases.ts'
import { describeRefreshes } from '../contract-refreshes.ts'
import { describeStore } from '../contract.ts'
import { openedStore } from '../stage.ts'

async function openStore() {
  const { store, file, clock, connection, rows } = openTestMirror()
  return openedStore({
    store,
    clock,
    other: async () => openTestMirror({ file, clock }).store,
    rows: async (sql) => rows(sql),
    read: async (rule) => runRule(connection, rule),
  })
}

describeStore('SQLite', openStore)
describeColumns('SQLite', openStore)
describeRefreshes('SQLite', openStore)
describeLeases('SQLite', async () => {
  const { file, clock } = openTestMirror()
  return {
    async open() {
      const connection = openForWriting(file)
      onTestFinished(() => void connection.close())
      return runnerOn(connection, { ...clock, signal: new AbortController().signal })
    },
  }
})
