"""JavaScript hook modules in one resident Node process a project. Knows no configuration files and no trust.

How to use it (``resident.py`` has the process, ``module.py`` its modules)::

    from hookturn.runners.node.resident import Node

    node = Node.for_project(project_dir)          # the project's own; starts nothing, never fails
    module = node.load(                           # a module of its own a call, also for the same file; starts nothing
        path, hook_name="no-console-log", config={...}, contract="rolebox", source="role.yaml:4",
        digest=sha256, log=lambda level, text: ...)
    loaded = module.load(env, timeout=10.0)       # starts Node, imports the file, runs its onLoad(ctx), at most once
    loaded.handlers                               # ("onToolAfter", ...): the functions that it exports
    loaded.on_load_error                          # why onLoad threw, or ""
    result = module.call(                         # loads it first if nobody did
        "onToolAfter", {"tool": "write", "args": {...}, "output": "..."},
        {"sessionID": "s1", "agent": "coder"}, env=ctx.env, timeout=5.0)
    result.ran                                    # False: the module has no such handler (no error)
    result.value                                  # what it returned or resolved to (rolebox: always None, it does not count)
    result.effects                                # [("inject", text), ("skip", reason), ("retry", reason)] in order
    result.payload                                # the payload's fields that the handler edited in place: {"system": [...]}
    await module.acall(...)                       # the same for a coroutine; cancelling it stops the handler
    module.dispose(timeout=5.0)                   # its onDispose(ctx), if it was loaded; then it is forgotten
    module.close()                                # forgotten at once; the last one ends the Node process

Raises ``FailedToStart`` (no Node, a Node that is too old, a file that is missing, changed or throws at import),
``NoAnswer`` (the handler threw or rejected, its module ended, its words are no JSON), ``TimeoutError``.

A handler gets ``(ctx, payload)`` with ``contract="rolebox"`` and ``(event, ctx)`` with ``contract="hookturn"``.
The context of a rolebox call may hold ``sessionID``, ``agent``, ``functions`` (name -> state, for getFunctionState),
``dispatch`` (for getDispatchState) and ``graph`` (for getGraphState).

Each module runs in a worker thread of that process: its own globals, timers, memory limit and output; a busy loop,
``process.exit()`` or a memory leak costs that module's calls. What a thread cannot contain (a blocking system call, a
crash of Node itself) ends the process, and the next call starts another.
"""
