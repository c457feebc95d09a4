"""The values between the steps of the compiler: graph, program, circuit, schedule, layout, parameters. No passes."""
