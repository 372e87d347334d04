# hooks/no-console-log.js, word for word in Python
def on_tool_after(ctx, input):
    tool, args = input.tool, input.args
    content = args.get("content") if isinstance(args.get("content"), str) else ""
    if "console.log(" in content:
        ctx.inject(f"警告：{tool} 输出中发现 console.log()。")
