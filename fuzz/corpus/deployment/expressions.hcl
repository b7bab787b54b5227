job "a" { group "g" { task "t" { x = "${f("}")}" y = <<-E
 a
 E
 z = [1, {a = "b", "c" : var.d}, f(1, [2])] } } }