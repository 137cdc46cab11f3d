import { describe, expect, it } from 'vitest'
import { announceMaintenance, maintenanceUnderWay } from '../../../src/store/sqlite/maintenance-notice.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'

describe('a notice of maintenance that the program did not write', () => {
  it.each(['', 'no JSON', 'null', '5', '{}', '{"owner":5,"what":[]}', '{"owner":"../other.db","what":"x"}'])(
    'counts for nothing: %j',
    (text) => {
      const { connection } = openTestMirror()
      connection.prepare('INSERT INTO sync_settings (name, value) VALUES (?, ?)').run('maintenance', text)

      expect(maintenanceUnderWay(connection)).toBeNull()
      expect(announceMaintenance(connection, { owner: '1-0123456789ab', what: 'orders' })).toBe(true)
    },
  )
})
