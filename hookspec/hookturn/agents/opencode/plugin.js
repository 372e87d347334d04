// @ts-check
/**
 * hookturn in opencode: hands what happens to `hookturn bridge opencode`, and does what it answers.
 *
 * It decides nothing. `hookturn install opencode` writes the three constants below, and puts this file among
 * opencode's plugins. Source of the functions and of what may be changed in place: @opencode-ai/plugin 1.18.33.
 */
import { spawn } from "node:child_process"

/** The program and its words; the event's payload goes to its standard input. @type {string[]} */
const COMMAND = ["hookturn", "bridge", "opencode"]

/** Seconds that an answer may take. */
const SECONDS = 60

/** Functions that refuse when no answer comes, because a hook there fails closed. @type {string[]} */
const CLOSED = []

/** Bus events that hooks can see; the others come in hundreds, or tell what a function has told. */
const BUS = new Set([
  "session.created",
  "session.idle",
  "session.error",
  "session.deleted",
  "session.compacted",
  "permission.asked",
  "permission.replied",
  "file.edited",
  "command.executed",
])

/**
 * What the bridge answers: an error to throw, plain fields to set, objects to change in place, lists to add to.
 * @typedef {{
 *   throw?: string,
 *   set?: Record<string, unknown>,
 *   assign?: Record<string, Record<string, unknown>>,
 *   replace?: Record<string, unknown[]>,
 *   warn?: string[],
 * }} Answer
 */

/**
 * Ask the bridge.
 * @param {string} name the function or "event"
 * @param {unknown} payload
 * @param {string} directory where the session works
 * @returns {Promise<Answer>}
 */
function ask(name, payload, directory) {
  return new Promise((resolve) => {
    /** @param {string} why */
    const failed = (why) => {
      const words = `hookturn did not answer (${why})`
      resolve(CLOSED.includes(name) ? { throw: `${words}, and a hook here fails closed` } : { warn: [words] })
    }
    const [program = "", ...words] = COMMAND
    const child = spawn(program, words, { cwd: directory, stdio: ["pipe", "pipe", "pipe"] })
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      failed(`nothing within ${SECONDS} s`)
    }, SECONDS * 1000)
    let out = ""
    child.stdout.setEncoding("utf8").on("data", (/** @type {string} */ text) => (out += text))
    child.stderr.resume()
    child.stdin.on("error", () => {}) // it may end without reading
    child.on("error", (error) => {
      clearTimeout(timer)
      failed(error.message)
    })
    child.on("close", (code) => {
      clearTimeout(timer)
      if (!out.trim()) return code ? failed(`exit code ${code}`) : resolve({})
      try {
        resolve(JSON.parse(out))
      } catch {
        failed("its answer is no JSON")
      }
    })
    child.stdin.end(JSON.stringify(payload))
  })
}

/**
 * Do what the bridge answered. Objects and lists are changed in place: opencode does not see new ones.
 * @param {Answer} answer
 * @param {any} output
 */
function apply(answer, output) {
  for (const words of answer.warn ?? []) console.error(`hookturn: ${words}`)
  if (answer.throw !== undefined) throw new Error(answer.throw)
  Object.assign(output, answer.set ?? {})
  for (const [key, fields] of Object.entries(answer.assign ?? {})) {
    for (const old of Object.keys(output[key])) if (!(old in fields)) delete output[key][old]
    Object.assign(output[key], fields)
  }
  for (const [key, items] of Object.entries(answer.replace ?? {})) output[key].splice(0, Infinity, ...items)
}

/** @type {import("@opencode-ai/plugin").Plugin} */
export const Hookturn = async ({ directory, worktree }) => {
  /**
   * @param {string} name
   * @param {any} input
   * @param {any} output
   */
  const forward = async (name, input, output) => {
    apply(await ask(name, { hook: name, input, output, directory, worktree }, directory), output)
  }
  return {
    event: async ({ event }) => {
      if (BUS.has(event.type)) apply(await ask("event", { hook: "event", event, directory, worktree }, directory), {})
    },
    "chat.message": (input, output) => forward("chat.message", input, output),
    "tool.execute.before": (input, output) => forward("tool.execute.before", input, output),
    "tool.execute.after": (input, output) => forward("tool.execute.after", input, output),
    "shell.env": (input, output) => forward("shell.env", input, output),
    "experimental.chat.system.transform": (input, output) =>
      forward("experimental.chat.system.transform", input, output),
    "experimental.text.complete": (input, output) => forward("experimental.text.complete", input, output),
    "experimental.session.compacting": (input, output) => forward("experimental.session.compacting", input, output),
  }
}
