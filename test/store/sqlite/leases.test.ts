import { onTestFinished } from 'vitest'
import { openForWriting } from '../../../src/store/sqlite/file/open.ts'
import { createTransact, runnerOn } from '../../../src/store/sqlite/transaction.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'
import { describeLeases } from '../contract-leases.ts'

describeLeases('SQLite', async () => {
  const { file, clock } = openTestMirror()
  return {
    async open() {
      const connection = openForWriting(file)
      onTestFinished(() => void connection.close())
      const patience = { ...clock, signal: new AbortController().signal }
      return runnerOn(connection, createTransact({ connection, ...patience }), patience)
    },
  }
})
